//! Limited resources, shared fairly between customers.

mod load;

use std::{
    collections::{HashMap, VecDeque},
    num::NonZeroUsize,
    ops::RangeInclusive,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread,
    time::Duration,
};

use assay_proto::{CustomerId, Fault};
use tokio::{sync::oneshot, time::timeout};

use self::load::Load;

/// Maximum wait for a share.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(10);

/// Maximum number of callers of one customer that wait at once.
const WAITING: usize = 1000;

/// A limited number of permits, shared fairly between customers.
///
/// One customer holds at most three quarters of the permits, so that another customer always finds
/// some. Whenever a permit is returned, it goes to the waiting customer that holds the fewest; of
/// several such customers, to the one that was served the longest ago. Callers of one customer are
/// served in order.
#[derive(Clone, Debug)]
pub struct Shares(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    /// Bounds of the number of permits; they are equal unless it adapts to the load.
    bounds: RangeInclusive<usize>,
    /// Number of permits at present.
    total: usize,
    held: usize,
    load: Load,
    /// Counts the permits that were handed out so far.
    clock: u64,
    /// Only customers that hold permits or wait for some.
    customers: HashMap<CustomerId, Usage>,
}

#[derive(Debug, Default)]
struct Usage {
    held: usize,
    served_at: u64,
    waiting: VecDeque<Waiter>,
}

#[derive(Debug)]
struct Waiter {
    count: usize,
    granted: oneshot::Sender<Share>,
}

/// Permits of one customer. They are returned when this is dropped.
#[derive(Debug)]
pub struct Share {
    shares: Shares,
    customer: CustomerId,
    count: usize,
}

impl Shares {
    /// Divides `total` permits, of which there has to be one at least.
    pub fn new(total: usize) -> Self {
        let total = total.max(1);
        Self::between(total..=total)
    }

    /// Divides at most `total` permits, for work that takes processors: fewer, down to one for each
    /// processor, while callers wait and the processors are overloaded.
    pub fn adaptive(total: usize) -> Self {
        let processors = thread::available_parallelism().map_or(1, NonZeroUsize::get);
        let total = total.max(1);
        Self::between(processors.max(2).min(total)..=total)
    }

    fn between(bounds: RangeInclusive<usize>) -> Self {
        Self(Arc::new(Mutex::new(State {
            total: *bounds.end(),
            bounds,
            held: 0,
            load: Load::default(),
            clock: 0,
            customers: HashMap::new(),
        })))
    }

    /// Acquires one permit. Fails with [`Fault::Busy`] after 10 seconds.
    pub async fn acquire(&self, customer: CustomerId) -> Result<Share, Fault> {
        self.acquire_many(customer, 1).await
    }

    /// Acquires several permits at once, at most as many as one customer may hold.
    pub async fn acquire_many(&self, customer: CustomerId, count: usize) -> Result<Share, Fault> {
        let granted = {
            let mut state = self.state();
            let count = count.min(most(*state.bounds.start()));
            if let Some(share) = self.grant_at_once(&mut state, customer, count) {
                return Ok(share);
            }
            let usage = state.customers.entry(customer).or_default();
            usage.waiting.retain(|waiter| !waiter.granted.is_closed());
            if usage.waiting.len() >= WAITING {
                return Err(Fault::Busy(ACQUIRE_TIMEOUT));
            }
            let (sender, granted) = oneshot::channel();
            usage.waiting.push_back(Waiter { count, granted: sender });
            self.watch_load(&mut state);
            self.serve(state);
            granted
        };
        match timeout(ACQUIRE_TIMEOUT, granted).await {
            Ok(share) => share.map_err(Fault::internal),
            Err(_) => Err(Fault::Busy(ACQUIRE_TIMEOUT)),
        }
    }

    /// Acquires one permit if the customer need not wait for it, else fails with [`Fault::Busy`].
    pub fn try_acquire(&self, customer: CustomerId) -> Result<Share, Fault> {
        let share = self.grant_at_once(&mut self.state(), customer, 1);
        share.ok_or(Fault::Busy(ACQUIRE_TIMEOUT))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands out permits to a customer of which nobody waits. Others may wait at the same time
    /// only if they hold more, or as much as one customer may.
    fn grant_at_once(
        &self,
        state: &mut State,
        customer: CustomerId,
        count: usize,
    ) -> Option<Share> {
        let usage = state.customers.get(&customer);
        let held = usage.map_or(0, |usage| usage.held);
        let is_first = usage.is_none_or(|usage| usage.waiting.is_empty());
        let fits = is_first && state.may_hold(held, count) && count <= state.free(held);
        let is_next = fits && state.next().is_none_or(|(_, holds)| held < holds);
        is_next.then(|| self.grant(state, customer, count))
    }

    fn grant(&self, state: &mut State, customer: CustomerId, count: usize) -> Share {
        state.held += count;
        state.clock += 1;
        let served_at = state.clock;
        let usage = state.customers.entry(customer).or_default();
        usage.held += count;
        usage.served_at = served_at;
        Share { shares: self.clone(), customer, count }
    }

    fn release(&self, customer: CustomerId, count: usize) {
        let mut state = self.state();
        state.held -= count;
        if let Some(usage) = state.customers.get_mut(&customer) {
            usage.held -= count;
        }
        state.forget(customer);
        self.serve(state);
    }

    /// Hands free permits to those who wait.
    fn serve(&self, mut state: MutexGuard<'_, State>) {
        let mut granted = Vec::new();
        while let Some((customer, waiter)) = state.pop_next() {
            granted.push((waiter.granted, self.grant(&mut state, customer, waiter.count)));
        }
        // A share whose caller has gone is dropped here, which locks the state again.
        drop(state);
        for (waiter, share) in granted {
            let _ = waiter.send(share);
        }
    }
}

impl State {
    /// Number of permits for a customer that holds so many. One that holds none is served from all
    /// that there ever are: work that others began before the processors were overloaded does not
    /// keep it out.
    fn total(&self, held: usize) -> usize {
        if held == 0 { *self.bounds.end() } else { self.total }
    }

    fn free(&self, held: usize) -> usize {
        self.total(held).saturating_sub(self.held)
    }

    /// Whether a customer that holds so many permits may hold `count` more.
    fn may_hold(&self, held: usize, count: usize) -> bool {
        held + count <= most(self.total(held))
    }

    /// Returns the customer that is served next, and how many permits it holds: of those that may
    /// hold what they wait for, the one that holds the fewest.
    fn next(&self) -> Option<(CustomerId, usize)> {
        let eligible = self.customers.iter().filter(|(_, usage)| {
            let first = usage.waiting.front();
            first.is_some_and(|waiter| self.may_hold(usage.held, waiter.count))
        });
        let next = eligible.min_by_key(|(_, usage)| (usage.held, usage.served_at));
        next.map(|(customer, usage)| (*customer, usage.held))
    }

    /// Removes the next waiter, unless what it waits for is not free. Then nobody overtakes it.
    fn pop_next(&mut self) -> Option<(CustomerId, Waiter)> {
        loop {
            let (customer, held) = self.next()?;
            let free = self.free(held);
            let waiting = &mut self.customers.get_mut(&customer)?.waiting;
            let waiter = waiting.pop_front()?;
            if waiter.granted.is_closed() {
                self.forget(customer);
            } else if waiter.count > free {
                waiting.push_front(waiter);
                return None;
            } else {
                return Some((customer, waiter));
            }
        }
    }

    fn forget(&mut self, customer: CustomerId) {
        let usage = self.customers.get(&customer);
        if usage.is_some_and(|usage| usage.held == 0 && usage.waiting.is_empty()) {
            self.customers.remove(&customer);
        }
    }
}

/// Maximum number of permits of `total` that one customer holds.
fn most(total: usize) -> usize {
    let reserved = (total / 4).max(1);
    (total - reserved).max(1)
}

impl Drop for Share {
    fn drop(&mut self) {
        self.shares.release(self.customer, self.count);
    }
}

#[cfg(test)]
mod tests;
