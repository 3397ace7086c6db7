//! Carries events from the outbox to JetStream.

mod courier;
mod queue;
mod upkeep;

use std::time::Duration;

use assay_runtime::{Database, Runtime};
use sqlx::{Error, PgPool};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use self::{courier::Courier, queue::Queue};
use crate::{Nats, Stream, connection::PAUSE, telemetry};

/// The shortest and the longest wait for something to do. A writer that began while the relay was
/// awake does not wake it, so the wait grows from little: an event waits no longer for the relay
/// than it waited for its own commit, or for the wait after that.
const WAIT: (Duration, Duration) = (Duration::from_millis(10), Duration::from_secs(1));

/// How many events are on their way at once.
const BATCH: i64 = 256;

/// Publishes what is committed to a service's outbox, in order, on the service's stream.
///
/// Of all relays of a database one works; the others wait to take its place. An event is published
/// again if it is not known to have been: JetStream drops what it gets twice within minutes,
/// consumers what they get twice at any time. While NATS is away the outbox grows, nothing else.
#[derive(Clone)]
pub struct Relay {
    pool: PgPool,
    nats: Nats,
    stream: Stream,
}

impl Relay {
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

    /// Works until told to stop; then finishes the batch in hand.
    pub async fn run(self, stop: CancellationToken) {
        let mut down = false;
        telemetry::describe();
        while !stop.is_cancelled() {
            let ended = self.term(&stop, &mut down).await;
            upkeep::forget(self.stream);
            let Err(error) = ended else { continue };
            if !std::mem::replace(&mut down, true) {
                tracing::warn!(%error, "the outbox cannot be read; trying again");
            }
            tokio::select! {
                () = sleep(PAUSE) => {}
                () = stop.cancelled() => {}
            }
        }
    }

    /// One connection to the database: from its beginning, over the wait for the lock, to its end.
    async fn term(&self, stop: &CancellationToken, down: &mut bool) -> Result<(), Error> {
        let mut queue = Queue::open(&self.pool).await?;
        while !queue.try_lock().await? {
            tokio::select! {
                () = sleep(PAUSE) => {}
                () = stop.cancelled() => return Ok(()),
            }
        }
        *down = false;
        tracing::info!(stream = self.stream.name(), "relaying events");
        tokio::select! {
            ended = self.carry(&mut queue, stop) => ended,
            () = upkeep::run(&self.pool, &self.nats, self.stream) => Ok(()),
        }
    }

    async fn carry(&self, queue: &mut Queue, stop: &CancellationToken) -> Result<(), Error> {
        let mut courier = Courier::new(&self.nats, self.stream);
        let mut wait = WAIT.0;
        while !stop.is_cancelled() {
            let batch = queue.head(BATCH).await?;
            let carried = alive(queue, courier.carry(&batch)).await?;
            if carried > 0 {
                queue.mark(&batch[..carried]).await?;
                wait = WAIT.0;
                continue;
            }
            let nothing_to_do = batch.is_empty();
            tokio::select! {
                woken = queue.wait(wait), if nothing_to_do => woken?,
                () = sleep(wait), if !nothing_to_do => {}
                () = stop.cancelled() => {}
            }
            wait = (wait * 2).min(WAIT.1);
        }
        Ok(())
    }
}

/// Shows PostgreSQL that the relay lives while it waits for NATS.
async fn alive<T>(queue: &mut Queue, work: impl Future<Output = T>) -> Result<T, Error> {
    let mut work = std::pin::pin!(work);
    loop {
        tokio::select! {
            done = &mut work => return Ok(done),
            () = sleep(PAUSE) => queue.ping().await?,
        }
    }
}
