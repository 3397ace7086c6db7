//! Waiting for new records without polling the database often, and without holding a connection.
//!
//! Code that adds a record wakes the waiters, in this process or over NATS. Because a message may
//! be lost, waiters also poll every few seconds. Waiters and polls are shared fairly between
//! customers, and only a few poll at once, however many are woken.

use std::{
    collections::HashMap,
    future,
    hash::Hash,
    sync::{
        Arc, Mutex, PoisonError, Weak,
        atomic::{AtomicUsize, Ordering},
    },
    task::Poll,
    time::Duration,
};

use assay_proto::{CustomerId, Fault};
use tokio::{
    sync::Notify,
    time::{Instant, sleep, sleep_until},
};
use tokio_util::sync::CancellationToken;

use crate::{Share, Shares};
use assay_runtime::Runtime;

/// Interval of polls without a wakeup.
const POLL_INTERVAL: Duration = Duration::from_secs(5);

/// Maximum number of waiters.
const WAITERS: usize = 2000;

/// Maximum number of concurrent polls, which leaves database connections to requests.
const POLLS: usize = 4;

/// A key that belongs to a customer.
pub trait OfCustomer {
    fn customer(&self) -> CustomerId;
}

impl OfCustomer for CustomerId {
    fn customer(&self) -> CustomerId {
        *self
    }
}

impl<O: OfCustomer, K> OfCustomer for (O, K) {
    fn customer(&self) -> CustomerId {
        self.0.customer()
    }
}

/// Wakes those who wait for a key.
pub struct Notifier<K>(Arc<Inner<K>>);

struct Inner<K> {
    waiting: Mutex<HashMap<K, Weak<Notify>>>,
    places: Shares,
    polls: Shares,
    sleeping: Arc<AtomicUsize>,
    stopping: CancellationToken,
    interval: Duration,
}

impl<K> Clone for Notifier<K> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<K: Eq + Hash + OfCustomer> Notifier<K> {
    /// Creates a notifier without waiters. All waits end when the program stops.
    pub fn new(runtime: &Runtime) -> Self {
        Self::polling_every(POLL_INTERVAL, runtime)
    }

    /// Creates a notifier without waiters that poll only if they are woken, and at their deadline: a
    /// lost message delays them until then.
    pub fn without_polls(runtime: &Runtime) -> Self {
        Self::polling_every(Duration::MAX, runtime)
    }

    fn polling_every(interval: Duration, runtime: &Runtime) -> Self {
        Self(Arc::new(Inner {
            interval,
            waiting: Mutex::default(),
            places: Shares::new(WAITERS),
            polls: Shares::new(POLLS),
            sleeping: Arc::default(),
            stopping: runtime.stopping(),
        }))
    }

    /// Returns the number of waiters that have polled in vain and sleep, over all keys.
    pub fn sleeping(&self) -> usize {
        self.0.sleeping.load(Ordering::Relaxed)
    }

    /// Wakes all waiters for a key.
    pub fn wake(&self, key: &K) {
        let waiting = self.0.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(waiting) = waiting.get(key).and_then(Weak::upgrade) {
            waiting.notify_waiters();
        }
    }

    /// Registers a waiter for a key. Fails with [`Fault::Busy`] if there are too many.
    pub fn register(&self, key: K) -> Result<Waiter, Fault> {
        self.register_any(key.customer(), [key])
    }

    /// Registers a waiter for any of several keys of a customer. Fails with [`Fault::Busy`] if there
    /// are too many waiters.
    pub fn register_any(
        &self,
        customer: CustomerId,
        keys: impl IntoIterator<Item = K>,
    ) -> Result<Waiter, Fault> {
        let share = self.0.places.try_acquire(customer)?;
        let mut waiting = self.0.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let mut notify = |key| {
            waiting.get(&key).and_then(Weak::upgrade).unwrap_or_else(|| {
                waiting.retain(|_, waiting| waiting.strong_count() > 0);
                let notify = Arc::new(Notify::new());
                waiting.insert(key, Arc::downgrade(&notify));
                notify
            })
        };
        let notifies = keys.into_iter().map(&mut notify).collect();
        let Inner { polls, sleeping, stopping, interval, .. } = &*self.0;
        let (polls, sleeping, stopping) = (polls.clone(), sleeping.clone(), stopping.clone());
        let interval = *interval;
        Ok(Waiter { customer, notifies, polls, sleeping, stopping, interval, _place: share })
    }
}

/// A registered waiter. Dropping it makes room for another one.
pub struct Waiter {
    customer: CustomerId,
    notifies: Vec<Arc<Notify>>,
    polls: Shares,
    sleeping: Arc<AtomicUsize>,
    stopping: CancellationToken,
    interval: Duration,
    _place: Share,
}

impl Waiter {
    /// Whether the program stops. A poll that takes many steps should end then.
    pub fn is_stopping(&self) -> bool {
        self.stopping.is_cancelled()
    }

    /// Calls `poll` at once and after every wakeup, until it returns something, the deadline has
    /// passed or the program stops.
    pub async fn poll<T, F: Future<Output = Result<Option<T>, Fault>>>(
        &self,
        deadline: Option<Instant>,
        mut poll: impl FnMut() -> F,
    ) -> Result<Option<T>, Fault> {
        let mut has_polled = false;
        loop {
            // Enabled before the poll, so that no wakeup is missed in between.
            let notified = self.notifies.iter().map(|notify| {
                let mut notified = Box::pin(notify.notified());
                notified.as_mut().enable();
                notified
            });
            let mut notified: Vec<_> = notified.collect();
            let notified = future::poll_fn(|context| {
                let is_woken = notified.iter_mut().any(|one| one.as_mut().poll(context).is_ready());
                if is_woken { Poll::Ready(()) } else { Poll::Pending }
            });
            let found = match self.polls.acquire(self.customer).await {
                Ok(_share) => poll().await?,
                // Poll again after the next interval.
                Err(Fault::Busy(_)) if has_polled => None,
                Err(fault) => return Err(fault),
            };
            has_polled = true;
            if found.is_some() || deadline.is_some_and(|deadline| deadline <= Instant::now()) {
                return Ok(found);
            }
            let expired = async {
                match deadline {
                    Some(deadline) => sleep_until(deadline).await,
                    None => future::pending().await,
                }
            };
            let _sleeping = Sleeping::begin(&self.sleeping);
            tokio::select! {
                () = notified => {}
                () = sleep(self.interval) => {}
                () = expired => {}
                () = self.stopping.cancelled() => return Ok(None),
            }
        }
    }
}

/// Counts a sleeping waiter until it is dropped.
struct Sleeping<'a>(&'a AtomicUsize);

impl<'a> Sleeping<'a> {
    fn begin(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count)
    }
}

impl Drop for Sleeping<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use futures::future::join_all;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn only_a_few_woken_waiters_poll_at_once() {
        let notifier = Notifier::new(&Runtime::new("test"));
        let customer = CustomerId::new();
        let (polling, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let begun = AtomicUsize::new(0);
        let wait = async || {
            let waiter = notifier.register(customer).unwrap();
            let poll = async || {
                most.fetch_max(polling.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                sleep(Duration::from_millis(1)).await;
                polling.fetch_sub(1, Ordering::SeqCst);
                // The first poll of each waiter finds nothing.
                Ok((begun.fetch_add(1, Ordering::SeqCst) >= 500).then_some(()))
            };
            waiter.poll(None, poll).await
        };
        let waking = async {
            while notifier.sleeping() < 500 {
                sleep(Duration::from_millis(1)).await;
            }
            notifier.wake(&customer);
            Ok(None)
        };
        let (found, _) = tokio::join!(join_all((0..500).map(|_| wait())), async {
            waking.await as Result<Option<()>, Fault>
        });
        assert!(found.iter().all(|found| matches!(found, Ok(Some(())))));
        assert!(most.into_inner() <= POLLS);
    }

    #[tokio::test(start_paused = true)]
    async fn a_waiter_polls_again_without_a_wakeup() {
        let notifier = Notifier::new(&Runtime::new("test"));
        let (begun, polls) = (Instant::now(), AtomicUsize::new(0));
        let poll = async || Ok((polls.fetch_add(1, Ordering::SeqCst) == 2).then_some(()));
        let waiter = notifier.register(CustomerId::new()).unwrap();
        let found = waiter.poll(None, poll).await;
        assert!(matches!(found, Ok(Some(()))));
        assert_eq!(begun.elapsed(), 2 * POLL_INTERVAL);
    }

    #[tokio::test(start_paused = true)]
    async fn a_waiter_without_polls_polls_at_its_deadline() {
        let notifier = Notifier::without_polls(&Runtime::new("test"));
        let (begun, polls) = (Instant::now(), AtomicUsize::new(0));
        let poll = async || {
            polls.fetch_add(1, Ordering::SeqCst);
            Ok(None::<()>)
        };
        let waiter = notifier.register(CustomerId::new()).unwrap();
        let deadline = begun + 6 * POLL_INTERVAL;
        assert!(matches!(waiter.poll(Some(deadline), poll).await, Ok(None)));
        assert_eq!((begun.elapsed(), polls.into_inner()), (6 * POLL_INTERVAL, 2));
    }

    #[tokio::test]
    async fn one_customer_cannot_take_the_room_of_all_waiters() {
        let notifier = Notifier::new(&Runtime::new("test"));
        let (one, other) = (CustomerId::new(), CustomerId::new());
        let waiters: Vec<_> = (0..WAITERS).map_while(|_| notifier.register(one).ok()).collect();
        assert_eq!(waiters.len(), WAITERS / 4 * 3);
        assert!(notifier.register(other).is_ok());
        drop(waiters);
        assert!(notifier.register(one).is_ok());
    }
}
