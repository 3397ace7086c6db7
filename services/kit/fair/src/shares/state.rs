//! The permits, and the callers that hold them or wait for them.
//!
//! The state is behind one mutex, which is held for a few comparisons and never during I/O. `queue` has one
//! entry for each customer that waits, ordered by the permits that it holds and by the time of its last
//! grant. So the next customer is the first entry, and every change of a customer moves its entry
//! ([`State::change`]). A grant is sent to a caller that may have gone: then its `Share` is dropped, and
//! the permit goes to the next one.

use std::{
    collections::{BTreeSet, HashMap, VecDeque},
    ops::RangeInclusive,
};

use assay_proto::CustomerId;
use tokio::sync::oneshot;

use super::Share;

/// Maximum number of callers of one customer that wait at once.
pub(super) const WAITING: usize = 1000;

/// The load of the processors, as far as it was seen.
#[derive(Debug, Default)]
pub(super) struct Load {
    pub(super) is_watched: bool,
    /// Number of looks since a late one.
    pub(super) calm: u32,
    /// Number of looks since a permit was granted, and the grants until then.
    pub(super) stuck: u32,
    pub(super) grants: u64,
}

#[derive(Debug)]
pub(super) struct State {
    /// Bounds of the number of permits; they are equal unless it adapts to the load.
    pub(super) bounds: RangeInclusive<usize>,
    /// Number of permits at present.
    pub(super) total: usize,
    pub(super) held: usize,
    pub(super) load: Load,
    /// Counts the permits that were handed out so far.
    pub(super) clock: u64,
    /// Only customers that hold permits or wait for some.
    pub(super) customers: HashMap<CustomerId, Usage>,
    /// The customers that wait, in the order in which they are served.
    pub(super) queue: BTreeSet<(usize, u64, CustomerId)>,
}

#[derive(Debug, Default)]
pub(super) struct Usage {
    pub(super) held: usize,
    pub(super) served_at: u64,
    pub(super) waiting: VecDeque<Waiter>,
}

#[derive(Debug)]
pub(super) struct Waiter {
    pub(super) count: usize,
    pub(super) granted: oneshot::Sender<Share>,
}

impl State {
    pub(super) fn new(bounds: RangeInclusive<usize>) -> Self {
        Self {
            total: *bounds.end(),
            bounds,
            held: 0,
            load: Load::default(),
            clock: 0,
            customers: HashMap::new(),
            queue: BTreeSet::new(),
        }
    }

    /// Returns the number of permits that exist for a customer that holds so many. For a customer that holds
    /// none, it is the number without overload. So the work that others began before the processors were
    /// overloaded does not keep that customer out.
    fn total(&self, held: usize) -> usize {
        if held == 0 { *self.bounds.end() } else { self.total }
    }

    pub(super) fn free(&self, held: usize) -> usize {
        self.total(held).saturating_sub(self.held)
    }

    /// Whether a customer that holds so many permits may hold `count` more.
    pub(super) fn may_hold(&self, held: usize, count: usize) -> bool {
        held + count <= most(self.total(held))
    }

    /// Adds a caller to those who wait. Returns false if too many of the customer do.
    pub(super) fn enqueue(&mut self, customer: CustomerId, waiter: Waiter) -> bool {
        self.change(customer, |usage| {
            while usage.waiting.front().is_some_and(Waiter::has_gone) {
                usage.waiting.pop_front();
            }
            if usage.waiting.len() >= WAITING {
                usage.waiting.retain(|waiter| !waiter.has_gone());
            }
            let fits = usage.waiting.len() < WAITING;
            if fits {
                usage.waiting.push_back(waiter);
            }
            fits
        })
    }

    /// Changes the usage of a customer, and its position in the queue accordingly.
    pub(super) fn change<T>(
        &mut self,
        customer: CustomerId,
        change: impl FnOnce(&mut Usage) -> T,
    ) -> T {
        let usage = self.customers.entry(customer).or_default();
        if !usage.waiting.is_empty() {
            self.queue.remove(&(usage.held, usage.served_at, customer));
        }
        let result = change(usage);
        if !usage.waiting.is_empty() {
            self.queue.insert((usage.held, usage.served_at, customer));
        } else if usage.held == 0 {
            self.customers.remove(&customer);
        }
        result
    }

    /// Returns the customer that is served next, and how many permits it holds: of those that may
    /// hold what they wait for, the one that holds the fewest.
    pub(super) fn next(&self) -> Option<(CustomerId, usize)> {
        let eligible = self.queue.iter().find(|(held, _, customer)| {
            let first = self.customers.get(customer).and_then(|usage| usage.waiting.front());
            first.is_some_and(|waiter| self.may_hold(*held, waiter.count))
        });
        eligible.map(|(held, _, customer)| (*customer, *held))
    }

    /// Returns the number of callers of a customer that wait and have not gone.
    pub(super) fn waiting(&self, customer: CustomerId) -> usize {
        let waiting = self.customers.get(&customer).map(|usage| usage.waiting.iter());
        waiting.map_or(0, |waiting| waiting.filter(|waiter| !waiter.has_gone()).count())
    }

    /// Whether a customer waits that holds no permit, or at least two fewer than this one.
    pub(super) fn is_wanted_from(&self, customer: CustomerId) -> bool {
        let held = self.customers.get(&customer).map_or(0, |usage| usage.held);
        let waits = |other: &CustomerId| {
            let usage = self.customers.get(other);
            usage.is_some_and(|usage| usage.waiting.iter().any(|waiter| !waiter.has_gone()))
        };
        let holds_fewer = |holds: usize| holds < held && (holds == 0 || holds + 1 < held);
        self.queue.iter().any(|(holds, _, other)| holds_fewer(*holds) && waits(other))
    }

    /// Removes the next waiter, unless what it waits for is not free. Then nobody overtakes it.
    pub(super) fn pop_next(&mut self) -> Option<(CustomerId, Waiter)> {
        loop {
            let (customer, held) = self.next()?;
            let free = self.free(held);
            let first = self.customers.get(&customer)?.waiting.front()?;
            if first.count > free && !first.has_gone() {
                return None;
            }
            let waiter = self.change(customer, |usage| usage.waiting.pop_front())?;
            if !waiter.has_gone() {
                return Some((customer, waiter));
            }
        }
    }
}

impl Waiter {
    pub(super) fn has_gone(&self) -> bool {
        self.granted.is_closed()
    }
}

/// Maximum number of permits of `total` that one customer holds.
pub(super) fn most(total: usize) -> usize {
    let reserved = (total / 4).max(1);
    (total - reserved).max(1)
}
