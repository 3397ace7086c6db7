//! How engines that wait for work learn that there is some: without asking the database again and
//! again, and without holding a connection to it.
//!
//! Whoever queues something says so on NATS, outside of the subjects that are kept as events. A
//! message may be lost and NATS may be away; so who waits looks again after a while in any case.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError, Weak},
    time::Duration,
};

use assay_proto::{CustomerId, Fault};
use assay_runtime::Runtime;
use async_nats::{Client, connection::State};
use futures::StreamExt;
use serde::{Deserialize, Serialize};
use tokio::{
    sync::{Notify, Semaphore, SemaphorePermit},
    time::{Instant, sleep, timeout},
};
use tokio_util::sync::CancellationToken;

/// Where it is told that something was queued.
const QUEUED: &str = "assay.queued";

/// How long who waits believes that nobody has told of anything.
const POLL: Duration = Duration::from_secs(5);

/// How many engines may wait at once.
const WAITING: usize = 2000;

/// How long telling may take; it is not worth waiting for.
const PATIENCE: Duration = Duration::from_millis(500);

/// Which queue: that of a target group.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Line {
    customer: CustomerId,
    target_group: String,
}

/// Who waits at which queue.
#[derive(Clone)]
pub struct Queue(Arc<Inner>);

struct Inner {
    waiting: Mutex<HashMap<Line, Weak<Notify>>>,
    places: Semaphore,
    nats: Option<Client>,
    stopping: CancellationToken,
}

impl Queue {
    /// Tells those who wait in this process only; others find out by themselves, later.
    pub fn local(runtime: &Runtime) -> Self {
        Self::new(runtime, None)
    }

    /// Tells those who wait in any process.
    pub fn connect(runtime: &Runtime, nats: Client) -> Self {
        let this = Self::new(runtime, Some(nats.clone()));
        let (heard, stopping) = (this.clone(), runtime.stopping());
        runtime.spawn("queue", async move {
            let mut told = nats.subscribe(QUEUED).await?;
            // Without a message the connection has ended, which it does with the program.
            while let Some(Some(message)) = stopping.run_until_cancelled(told.next()).await {
                match serde_json::from_slice(&message.payload) {
                    Ok(line) => heard.wake(&line),
                    Err(error) => tracing::warn!(%error, "not a queue"),
                }
            }
            Ok(())
        });
        this
    }

    fn new(runtime: &Runtime, nats: Option<Client>) -> Self {
        Self(Arc::new(Inner {
            waiting: Mutex::default(),
            places: Semaphore::new(WAITING),
            nats,
            stopping: runtime.stopping(),
        }))
    }

    /// Tells engines of a group that there is work, right after the commit.
    pub(crate) async fn tell(&self, customer: CustomerId, target_group: &str) {
        let line = Line { customer, target_group: target_group.to_owned() };
        self.wake(&line);
        let Some(nats) = &self.0.nats else { return };
        if nats.connection_state() != State::Connected {
            return;
        }
        let Ok(message) = serde_json::to_vec(&line) else { return };
        let told = timeout(PATIENCE, nats.publish(QUEUED, message.into())).await;
        if !matches!(told, Ok(Ok(()))) {
            tracing::debug!("engines were not told of work; they will look by themselves");
        }
    }

    fn wake(&self, line: &Line) {
        let waiting = self.0.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(waiting) = waiting.get(line).and_then(Weak::upgrade) {
            waiting.notify_waiters();
        }
    }

    fn watch(&self, line: Line) -> Arc<Notify> {
        let mut waiting = self.0.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = waiting.get(&line).and_then(Weak::upgrade) {
            return known;
        }
        waiting.retain(|_, waiting| waiting.strong_count() > 0);
        let new = Arc::new(Notify::new());
        waiting.insert(line, Arc::downgrade(&new));
        new
    }

    fn place(&self) -> Result<SemaphorePermit<'_>, Fault> {
        self.0.places.try_acquire().map_err(|_| Fault::Busy(POLL))
    }

    /// Looks for work, and again whenever there may be some, until something is found, the time is
    /// over or the program stops.
    pub(crate) async fn wait<T, F: Future<Output = Result<Option<T>, Fault>>>(
        &self,
        customer: CustomerId,
        target_group: &str,
        patience: Duration,
        mut look: impl FnMut() -> F,
    ) -> Result<Option<T>, Fault> {
        if patience.is_zero() {
            return look().await;
        }
        let until = Instant::now() + patience;
        let _place = self.place()?;
        let queue = self.watch(Line { customer, target_group: target_group.to_owned() });
        loop {
            // From before the look on, so that nothing is missed in between.
            let mut told = std::pin::pin!(queue.notified());
            told.as_mut().enable();
            let found = look().await?;
            let left = until.saturating_duration_since(Instant::now());
            if found.is_some() || left.is_zero() {
                return Ok(found);
            }
            tokio::select! {
                () = told => {}
                () = sleep(POLL.min(left)) => {}
                () = self.0.stopping.cancelled() => return Ok(found),
            }
        }
    }
}
