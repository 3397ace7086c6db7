//! Limited resources, shared fairly between customers.
//!
//! A pool of connections, threads or bytes that all customers use belongs to the first one that is greedy,
//! unless somebody counts. [`Shares`] counts permits by customer. Nobody holds them all, and a returned
//! permit goes to the customer that has the fewest. So a customer waits for at most its own work, and for
//! one piece of work of each other customer. `docs/design/fairness.md` lists the pools of all programs in the
//! order in which a request passes them. A caller takes a permit of a later pool while it holds one of an
//! earlier pool, and never the other way round, so callers cannot wait for each other in a circle.

mod load;
mod state;

use std::{
    mem::replace,
    num::NonZeroUsize,
    ops::RangeInclusive,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread,
    time::Duration,
};

use assay_proto::{CustomerId, Fault};
use tokio::{sync::oneshot, time::timeout};

use self::state::{State, Waiter, most};

/// Maximum wait for a share.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(10);

/// A limited number of permits, shared fairly between customers.
///
/// One customer holds at most three quarters of the permits, so that another customer always finds
/// some. Whenever a permit is returned, it goes to the waiting customer that holds the fewest; of
/// several such customers, to the one that was served the longest ago. Callers of one customer are
/// served in order.
#[derive(Clone, Debug)]
pub struct Shares(Arc<Mutex<State>>);

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

    /// Does the same as [`Shares::adaptive`], with at least as many permits as the range begins
    /// with.
    pub fn between(bounds: RangeInclusive<usize>) -> Self {
        Self(Arc::new(Mutex::new(State::new(bounds))))
    }

    /// Acquires one permit. Fails with [`Fault::Busy`] after 10 seconds, and at once if too many callers of the
    /// customer wait already.
    pub async fn acquire(&self, customer: CustomerId) -> Result<Share, Fault> {
        self.acquire_many(customer, 1).await
    }

    /// Does the same as [`Shares::acquire`], but waits at most for `patience`.
    pub async fn acquire_within(
        &self,
        customer: CustomerId,
        patience: Duration,
    ) -> Result<Share, Fault> {
        self.acquire_many_within(customer, 1, patience).await
    }

    /// Acquires several permits at once, as [`Shares::acquire`] does one. Grants at most three quarters of the
    /// smallest size of the pool, even if `count` is larger.
    pub async fn acquire_many(&self, customer: CustomerId, count: usize) -> Result<Share, Fault> {
        self.acquire_many_within(customer, count, ACQUIRE_TIMEOUT).await
    }

    /// Does the same as [`Shares::acquire_many`], but waits at most for `patience`.
    pub async fn acquire_many_within(
        &self,
        customer: CustomerId,
        count: usize,
        patience: Duration,
    ) -> Result<Share, Fault> {
        let granted = {
            let mut state = self.state();
            let count = count.min(most(*state.bounds.start()));
            if let Some(share) = self.grant_at_once(&mut state, customer, count) {
                return Ok(share);
            }
            let (sender, granted) = oneshot::channel();
            if !state.enqueue(customer, Waiter { count, granted: sender }) {
                return Err(Fault::Busy(patience));
            }
            self.watch_load(&mut state);
            self.serve(state);
            granted
        };
        match timeout(patience, granted).await {
            Ok(share) => share.map_err(Fault::internal),
            Err(_) => Err(Fault::Busy(patience)),
        }
    }

    /// Acquires one permit if the customer need not wait for it, else fails with [`Fault::Busy`].
    pub fn try_acquire(&self, customer: CustomerId) -> Result<Share, Fault> {
        let share = self.grant_at_once(&mut self.state(), customer, 1);
        share.ok_or(Fault::Busy(ACQUIRE_TIMEOUT))
    }

    /// Returns the number of permits that a customer holds.
    pub fn held_by(&self, customer: CustomerId) -> usize {
        self.state().customers.get(&customer).map_or(0, |usage| usage.held)
    }

    /// Returns the number of callers of a customer that wait.
    pub fn waiting(&self, customer: CustomerId) -> usize {
        self.state().waiting(customer)
    }

    /// Whether another customer waits for a permit of this one: it holds none, or at least two fewer.
    pub fn is_wanted_from(&self, customer: CustomerId) -> bool {
        self.state().is_wanted_from(customer)
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
        state.change(customer, |usage| {
            usage.held += count;
            usage.served_at = served_at;
        });
        Share { shares: self.clone(), customer, count }
    }

    fn release(&self, customer: CustomerId, count: usize) {
        let mut state = self.state();
        state.held -= count;
        state.change(customer, |usage| usage.held -= count);
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

impl Share {
    /// Charges the permits to another customer. Fails with [`Fault::Busy`] if it may not hold as
    /// many more.
    pub fn reassign(&mut self, customer: CustomerId) -> Result<(), Fault> {
        if customer == self.customer {
            return Ok(());
        }
        let mut state = self.shares.state();
        let held = state.customers.get(&customer).map_or(0, |usage| usage.held);
        if !state.may_hold(held, self.count) {
            return Err(Fault::Busy(ACQUIRE_TIMEOUT));
        }
        state.change(customer, |usage| usage.held += self.count);
        let before = replace(&mut self.customer, customer);
        state.change(before, |usage| usage.held -= self.count);
        self.shares.serve(state);
        Ok(())
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.shares.release(self.customer, self.count);
    }
}

#[cfg(test)]
mod tests;
