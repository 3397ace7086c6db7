//! Waiting for something to be there, without asking the database again and again, and without
//! holding a connection to it.
//!
//! Whoever adds something says so, in this process or over NATS. A message may be missed and NATS
//! may be away; so who waits looks again after a while in any case.

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

use assay_proto::Fault;
use tokio::{
    sync::{Notify, OwnedSemaphorePermit, Semaphore},
    time::{Instant, sleep, sleep_until},
};
use tokio_util::sync::CancellationToken;

use crate::Runtime;

/// How long who waits believes that nobody has told of anything.
const POLL: Duration = Duration::from_secs(5);

/// How many may wait at once.
const PLACES: usize = 2000;

/// Who waits for what.
pub struct Wakeups<K>(Arc<Inner<K>>);

struct Inner<K> {
    waiting: Mutex<HashMap<K, Weak<Notify>>>,
    places: Arc<Semaphore>,
    asleep: Arc<AtomicUsize>,
    stopping: CancellationToken,
}

impl<K> Clone for Wakeups<K> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<K: Eq + Hash> Wakeups<K> {
    /// Nobody waits yet, and nobody will when the program stops.
    pub fn new(runtime: &Runtime) -> Self {
        Self(Arc::new(Inner {
            waiting: Mutex::default(),
            places: Arc::new(Semaphore::new(PLACES)),
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
        let permit = self.0.places.clone().try_acquire_owned().map_err(|_| Fault::Busy(POLL))?;
        let mut waiting = self.0.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let told = waiting.get(&key).and_then(Weak::upgrade).unwrap_or_else(|| {
            waiting.retain(|_, waiting| waiting.strong_count() > 0);
            let told = Arc::new(Notify::new());
            waiting.insert(key, Arc::downgrade(&told));
            told
        });
        let Inner { asleep, stopping, .. } = &*self.0;
        let (asleep, stopping) = (asleep.clone(), stopping.clone());
        Ok(Place { told, asleep, stopping, _permit: permit })
    }
}

/// A place among those who wait; somebody else's when it is dropped.
pub struct Place {
    told: Arc<Notify>,
    asleep: Arc<AtomicUsize>,
    stopping: CancellationToken,
    _permit: OwnedSemaphorePermit,
}

impl Place {
    /// Looks, and again whenever there may be something, until something is found, the time is over
    /// or the program stops. Without `until` the time is never over.
    pub async fn look<T, F: Future<Output = Result<Option<T>, Fault>>>(
        &self,
        until: Option<Instant>,
        mut look: impl FnMut() -> F,
    ) -> Result<Option<T>, Fault> {
        loop {
            // From before the look on, so that nothing is missed in between.
            let mut told = std::pin::pin!(self.told.notified());
            told.as_mut().enable();
            let found = look().await?;
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
