//! Waiting for something to be there, without asking the database again and again, and without
//! holding a connection to it.
//!
//! Whoever adds something says so, in this process or over NATS. A message may be missed and NATS
//! may be away; so who waits looks again after a while in any case. Places and looks are shared
//! fairly between customers, and only a few look at once, however many are woken.

use std::{
    collections::HashMap,
    future,
    hash::Hash,
    sync::{
        Arc, Mutex, PoisonError, Weak,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use assay_proto::{CustomerId, Fault};
use tokio::{
    sync::Notify,
    time::{Instant, sleep, sleep_until},
};
use tokio_util::sync::CancellationToken;

use crate::{Runtime, Share, Shares};

/// How long who waits believes that nobody has told of anything.
const POLL: Duration = Duration::from_secs(5);

/// How many may wait at once.
const PLACES: usize = 2000;

/// How many look at once: few enough to leave connections to the database to others.
const LOOKS: usize = 4;

/// What can be waited for: it belongs to a customer.
pub trait OfCustomer {
    fn customer(&self) -> CustomerId;
}

impl OfCustomer for CustomerId {
    fn customer(&self) -> CustomerId {
        *self
    }
}

/// Who waits for what.
pub struct Wakeups<K>(Arc<Inner<K>>);

struct Inner<K> {
    waiting: Mutex<HashMap<K, Weak<Notify>>>,
    places: Shares,
    looks: Shares,
    asleep: Arc<AtomicUsize>,
    stopping: CancellationToken,
}

impl<K> Clone for Wakeups<K> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<K: Eq + Hash + OfCustomer> Wakeups<K> {
    /// Nobody waits yet, and nobody will when the program stops.
    pub fn new(runtime: &Runtime) -> Self {
        Self(Arc::new(Inner {
            waiting: Mutex::default(),
            places: Shares::new(PLACES),
            looks: Shares::new(LOOKS),
            asleep: Arc::default(),
            stopping: runtime.stopping(),
        }))
    }

    /// How many have looked in vain and wait right now, whatever for.
    pub fn asleep(&self) -> usize {
        self.0.asleep.load(Ordering::Relaxed)
    }

    /// Has those who wait for `key` look again.
    pub fn wake(&self, key: &K) {
        let waiting = self.0.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(waiting) = waiting.get(key).and_then(Weak::upgrade) {
            waiting.notify_waiters();
        }
    }

    /// A place among those who wait for `key`, unless there are too many.
    pub fn wait_for(&self, key: K) -> Result<Place, Fault> {
        let customer = key.customer();
        let share = self.0.places.try_acquire(customer)?;
        let mut waiting = self.0.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let told = waiting.get(&key).and_then(Weak::upgrade).unwrap_or_else(|| {
            waiting.retain(|_, waiting| waiting.strong_count() > 0);
            let told = Arc::new(Notify::new());
            waiting.insert(key, Arc::downgrade(&told));
            told
        });
        let Inner { looks, asleep, stopping, .. } = &*self.0;
        let (looks, asleep, stopping) = (looks.clone(), asleep.clone(), stopping.clone());
        Ok(Place { customer, told, looks, asleep, stopping, _share: share })
    }
}

/// A place among those who wait; somebody else's when it is dropped.
pub struct Place {
    customer: CustomerId,
    told: Arc<Notify>,
    looks: Shares,
    asleep: Arc<AtomicUsize>,
    stopping: CancellationToken,
    _share: Share,
}

impl Place {
    /// Looks, and again whenever there may be something, until something is found, the time is over
    /// or the program stops. Without `until` the time is never over.
    pub async fn look<T, F: Future<Output = Result<Option<T>, Fault>>>(
        &self,
        until: Option<Instant>,
        mut look: impl FnMut() -> F,
    ) -> Result<Option<T>, Fault> {
        let mut has_looked = false;
        loop {
            // From before the look on, so that nothing is missed in between.
            let mut told = std::pin::pin!(self.told.notified());
            told.as_mut().enable();
            let found = match self.looks.acquire(self.customer).await {
                Ok(_look) => look().await?,
                // Others look; there is another time.
                Err(Fault::Busy(_)) if has_looked => None,
                Err(fault) => return Err(fault),
            };
            has_looked = true;
            if found.is_some() || until.is_some_and(|until| until <= Instant::now()) {
                return Ok(found);
            }
            let time_is_over = async {
                match until {
                    Some(until) => sleep_until(until).await,
                    None => future::pending().await,
                }
            };
            let _asleep = Asleep::begin(&self.asleep);
            tokio::select! {
                () = told => {}
                () = sleep(POLL) => {}
                () = time_is_over => {}
                () = self.stopping.cancelled() => return Ok(None),
            }
        }
    }
}

/// Counts as asleep until it is dropped, by whatever ends the wait.
struct Asleep<'a>(&'a AtomicUsize);

impl<'a> Asleep<'a> {
    fn begin(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count)
    }
}

impl Drop for Asleep<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use futures::future::join_all;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn however_many_are_woken_a_few_look_at_once() {
        let wakeups = Wakeups::new(&Runtime::new("test"));
        let customer = CustomerId::new();
        let (looking, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let begun = AtomicUsize::new(0);
        let wait = async || {
            let place = wakeups.wait_for(customer).unwrap();
            let look = async || {
                most.fetch_max(looking.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                sleep(Duration::from_millis(1)).await;
                looking.fetch_sub(1, Ordering::SeqCst);
                // The first look finds nothing.
                Ok((begun.fetch_add(1, Ordering::SeqCst) >= 500).then_some(()))
            };
            place.look(None, look).await
        };
        let waking = async {
            while wakeups.asleep() < 500 {
                sleep(Duration::from_millis(1)).await;
            }
            wakeups.wake(&customer);
            Ok(None)
        };
        let (found, _) = tokio::join!(join_all((0..500).map(|_| wait())), async {
            waking.await as Result<Option<()>, Fault>
        });
        assert!(found.iter().all(|found| matches!(found, Ok(Some(())))));
        assert!(most.into_inner() <= LOOKS);
    }

    #[tokio::test]
    async fn one_customer_leaves_places_to_others() {
        let wakeups = Wakeups::new(&Runtime::new("test"));
        let (one, other) = (CustomerId::new(), CustomerId::new());
        let places: Vec<_> = (0..PLACES).map_while(|_| wakeups.wait_for(one).ok()).collect();
        assert_eq!(places.len(), PLACES / 4 * 3);
        assert!(wakeups.wait_for(other).is_ok());
        drop(places);
        assert!(wakeups.wait_for(one).is_ok());
    }
}
