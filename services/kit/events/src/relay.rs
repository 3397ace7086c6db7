//! Publishes events from the outbox on JetStream.

mod housekeeping;
mod losses;
mod publisher;
mod queue;

use std::time::Duration;

use assay_database::Database;
use assay_fair::rest;
use assay_runtime::Runtime;
use sqlx::{Error, PgPool};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use self::{losses::LossWatch, publisher::Publisher, queue::Queue};
use crate::{Nats, Stream, connection::RETRY_INTERVAL, telemetry};

/// First and longest wait for new events. A transaction that began while the relay was busy does
/// not wake it, so the wait starts short and doubles: an event waits about as long for the relay as
/// for its own commit.
const IDLE_WAIT: (Duration, Duration) = (Duration::from_millis(10), Duration::from_secs(1));

/// Wait after a batch that was small, so that under load fewer statements carry more events.
const GATHERING: Duration = Duration::from_millis(20);

/// Maximum number of events that are published at once, and of bytes of their data as stored.
const BATCH: i64 = 1000;
const BYTES: i64 = 2 * 1024 * 1024;

/// Number of events in a small batch.
const SMALL: usize = 500;

/// Publishes the committed events of a service's outbox, in order, on the service's stream.
///
/// One relay of a database is active; the others stand by. An event is published again if no
/// acknowledgement was recorded: JetStream drops duplicates within minutes, consumers at any time.
/// While NATS is unavailable, only the outbox grows.
#[derive(Clone)]
pub struct Relay {
    pool: PgPool,
    nats: Nats,
    stream: Stream,
}

impl Relay {
    /// Creates a relay for the outbox in the database of this pool.
    pub fn new(pool: PgPool, nats: Nats, stream: Stream) -> Self {
        Self { pool, nats, stream }
    }

    /// Runs a relay from when the database is migrated until the program stops.
    pub fn start(runtime: &Runtime, database: &Database, nats: &Nats, stream: Stream) {
        let relay = Self::new(database.pool().clone(), nats.clone(), stream);
        let (database, stop) = (database.clone(), runtime.stopping());
        runtime.spawn("outbox relay", async move {
            tokio::select! {
                () = database.ready() => relay.run(stop).await,
                () = stop.cancelled() => {}
            }
            Ok(())
        });
    }

    /// Publishes events until `stop` is cancelled, then finishes the current batch.
    pub async fn run(self, stop: CancellationToken) {
        let mut down = false;
        telemetry::describe();
        while !stop.is_cancelled() {
            let ended = self.session(&stop, &mut down).await;
            housekeeping::reset(self.stream);
            let Err(error) = ended else { continue };
            if !std::mem::replace(&mut down, true) {
                tracing::warn!(%error, "cannot read the outbox; retrying");
            }
            tokio::select! {
                () = sleep(RETRY_INTERVAL) => {}
                () = stop.cancelled() => {}
            }
        }
    }

    /// Opens a connection, waits for the lock, and publishes events until the connection is lost.
    async fn session(&self, stop: &CancellationToken, down: &mut bool) -> Result<(), Error> {
        let mut queue = Queue::open(&self.pool).await?;
        while !queue.try_lock().await? {
            tokio::select! {
                () = sleep(RETRY_INTERVAL) => {}
                () = stop.cancelled() => return Ok(()),
            }
        }
        *down = false;
        tracing::info!(stream = self.stream.name(), "publishing events");
        tokio::select! {
            ended = self.publish(&mut queue, stop) => ended,
            () = housekeeping::run(&self.pool, &self.nats, self.stream) => Ok(()),
        }
    }

    async fn publish(&self, queue: &mut Queue, stop: &CancellationToken) -> Result<(), Error> {
        let mut publisher = Publisher::new(&self.nats, self.stream);
        let mut watch = LossWatch::new(&self.pool, &self.nats, self.stream);
        let mut wait = IDLE_WAIT.0;
        while !stop.is_cancelled() {
            if watch.is_due() {
                keep_alive(queue, watch.check()).await??;
            }
            let begun = Instant::now();
            let batch = queue.head(BATCH, BYTES).await?;
            let sequences = keep_alive(queue, publisher.publish(&batch)).await?;
            if sequences.len() < batch.len() {
                // The stream may be another one.
                watch.hurry();
            }
            if !sequences.is_empty() {
                queue.mark(&batch, &sequences).await?;
                wait = IDLE_WAIT.0;
                let least = if sequences.len() < SMALL { GATHERING } else { Duration::ZERO };
                // So that the events of a large change do not delay requests.
                rest(begun.elapsed().max(least)).await;
                continue;
            }
            let is_idle = batch.is_empty();
            tokio::select! {
                woken = queue.wait(wait), if is_idle => woken?,
                () = sleep(wait), if !is_idle => {}
                () = stop.cancelled() => {}
            }
            wait = (wait * 2).min(IDLE_WAIT.1);
        }
        Ok(())
    }
}

/// Pings PostgreSQL while `work` waits for NATS, so that it does not close the session.
async fn keep_alive<T>(queue: &mut Queue, work: impl Future<Output = T>) -> Result<T, Error> {
    let mut work = std::pin::pin!(work);
    loop {
        tokio::select! {
            done = &mut work => return Ok(done),
            () = sleep(RETRY_INTERVAL) => queue.ping().await?,
        }
    }
}
