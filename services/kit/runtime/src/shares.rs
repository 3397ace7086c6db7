//! Fair shares: what only so many may use at once is divided between customers.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use assay_proto::{CustomerId, Fault};
use tokio::{sync::oneshot, time::timeout};

/// Maximum time that a caller waits for a share.
const PATIENCE: Duration = Duration::from_secs(10);

/// Maximum number of callers of one customer that wait at once.
const WAITING: usize = 1000;

/// A limited number of permits, shared fairly between customers.
///
/// One customer holds at most three quarters of the permits, so that another customer always finds
/// some. Whenever a permit is returned, it goes to the waiting customer that holds the fewest; of
/// several such customers, to the one that was served the longest ago. Callers of one customer are
/// served in order.
#[derive(Clone, Debug)]
pub struct Shares(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    /// Maximum number of permits that one customer holds.
    most: usize,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    free: usize,
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
        let reserved = (total / 4).max(1);
        let state = State { free: total, clock: 0, customers: HashMap::new() };
        Self(Arc::new(Inner { most: (total - reserved).max(1), state: Mutex::new(state) }))
    }

    /// Acquires one permit. Fails with [`Fault::Busy`] after 10 seconds.
    pub async fn acquire(&self, customer: CustomerId) -> Result<Share, Fault> {
        self.acquire_many(customer, 1).await
    }

    /// Acquires several permits at once, at most as many as one customer may hold.
    pub async fn acquire_many(&self, customer: CustomerId, count: usize) -> Result<Share, Fault> {
        let count = count.min(self.0.most);
        let granted = {
            let mut state = self.state();
            if let Some(share) = self.grant_at_once(&mut state, customer, count) {
                return Ok(share);
            }
            let usage = state.customers.entry(customer).or_default();
            usage.waiting.retain(|waiter| !waiter.granted.is_closed());
            if usage.waiting.len() >= WAITING {
                return Err(Fault::Busy(PATIENCE));
            }
            let (sender, granted) = oneshot::channel();
            usage.waiting.push_back(Waiter { count, granted: sender });
            self.serve(state);
            granted
        };
        match timeout(PATIENCE, granted).await {
            Ok(share) => share.map_err(Fault::internal),
            Err(_) => Err(Fault::Busy(PATIENCE)),
        }
    }

    /// Acquires one permit if the customer need not wait for it, else fails with [`Fault::Busy`].
    pub fn try_acquire(&self, customer: CustomerId) -> Result<Share, Fault> {
        let share = self.grant_at_once(&mut self.state(), customer, 1);
        share.ok_or(Fault::Busy(PATIENCE))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands out permits to a customer of which nobody waits. Others may wait at the same time
    /// only because they hold as much as one customer may.
    fn grant_at_once(
        &self,
        state: &mut State,
        customer: CustomerId,
        count: usize,
    ) -> Option<Share> {
        let usage = state.customers.get(&customer);
        let held = usage.map_or(0, |usage| usage.held);
        let is_first = usage.is_none_or(|usage| usage.waiting.is_empty());
        let fits = is_first && held + count <= self.0.most && count <= state.free;
        let is_next = fits && state.next(self.0.most).is_none();
        is_next.then(|| self.grant(state, customer, count))
    }

    fn grant(&self, state: &mut State, customer: CustomerId, count: usize) -> Share {
        state.free -= count;
        state.clock += 1;
        let served_at = state.clock;
        let usage = state.customers.entry(customer).or_default();
        usage.held += count;
        usage.served_at = served_at;
        Share { shares: self.clone(), customer, count }
    }

    fn release(&self, customer: CustomerId, count: usize) {
        let mut state = self.state();
        state.free += count;
        if let Some(usage) = state.customers.get_mut(&customer) {
            usage.held -= count;
        }
        state.forget(customer);
        self.serve(state);
    }

    /// Hands free permits to those who wait.
    fn serve(&self, mut state: MutexGuard<'_, State>) {
        let mut granted = Vec::new();
        while let Some((customer, waiter)) = state.pop_next(self.0.most) {
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
    /// Returns the customer that is served next: of those that may hold what they wait for, the
    /// one that holds the fewest permits.
    fn next(&self, most: usize) -> Option<CustomerId> {
        let eligible = self.customers.iter().filter(|(_, usage)| {
            usage.waiting.front().is_some_and(|waiter| usage.held + waiter.count <= most)
        });
        let next = eligible.min_by_key(|(_, usage)| (usage.held, usage.served_at));
        next.map(|(customer, _)| *customer)
    }

    /// Removes the next waiter, unless what it waits for is not free. Then nobody overtakes it.
    fn pop_next(&mut self, most: usize) -> Option<(CustomerId, Waiter)> {
        loop {
            let customer = self.next(most)?;
            let waiting = &mut self.customers.get_mut(&customer)?.waiting;
            let waiter = waiting.pop_front()?;
            if waiter.granted.is_closed() {
                self.forget(customer);
            } else if waiter.count > self.free {
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

impl Drop for Share {
    fn drop(&mut self) {
        self.shares.release(self.customer, self.count);
    }
}

#[cfg(test)]
mod tests;
