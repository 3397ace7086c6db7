//! Consumers, which apply the events of another service once each.

mod apply;
pub(crate) mod dead_letter;
pub(crate) mod delivery;
mod inbox;
mod parked;
mod received;
mod retry;
mod session;
mod subscription;

use std::time::Duration;

use assay_proto::Fault;
use assay_runtime::{Database, Runtime};
use sqlx::{Error, PgPool, PgTransaction};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

pub use self::received::Received;
use self::{
    retry::{ParkedSignal, Retrier},
    session::{Limits, Session},
    subscription::Subscription,
};
use crate::{Nats, Stream, connection::RETRY_INTERVAL, telemetry};

/// Limits of the first attempt, for which later events wait. An event that exceeds them is parked.
const LIMITS: Limits =
    Limits { event: Duration::from_millis(900), statement: "800ms", lock: "400ms" };

/// Time after which an event that stays blocked becomes a dead letter.
const GIVE_UP_AFTER: Duration = Duration::from_mins(15);

/// Applies the events of another service.
pub trait Handler: Send + Sync + 'static {
    /// Applies an event. The transaction also marks the event as applied, and may apply several
    /// events.
    ///
    /// A handler selects events by their type. All others are applied by doing nothing, also those
    /// of types that a later release publishes. An event that fails is parked and retried after
    /// others, so handlers must compare revisions instead of relying on the order of events. It
    /// becomes a dead letter after five attempts, or if it is blocked ([`Fault::Unavailable`], such
    /// as a lock that is not released) after 15 minutes. An event that takes longer than a second is
    /// parked too, and gets 20 seconds on a retry.
    fn handle(
        &self,
        tx: &mut PgTransaction<'_>,
        event: &Received,
    ) -> impl Future<Output = Result<(), Fault>> + Send;
}

/// A durable consumer of a stream.
///
/// One replica of a service consumes; the others stand by. So the events of a record are applied in
/// order, as long as none fails.
#[derive(Clone, Debug)]
pub struct Consumer {
    name: &'static str,
    stream: Stream,
    filter: String,
    first_delay: Duration,
    give_up_after: Duration,
}

impl Consumer {
    /// Creates a consumer of all events of a stream. JetStream and the inbox identify it by its
    /// name, usually that of the consuming service.
    pub fn new(name: &'static str, stream: Stream) -> Self {
        let (filter, first_delay) = (stream.subjects(), Duration::from_secs(1));
        Self { name, stream, filter, first_delay, give_up_after: GIVE_UP_AFTER }
    }

    /// Restricts the consumer to one kind of record, such as `test_case`.
    #[must_use]
    pub fn only(self, noun: &str) -> Self {
        Self { filter: format!("assay.{}.*.{noun}.*", self.stream.service()), ..self }
    }

    /// Sets the backoff before the first retry of a failed event, one second by default. It is
    /// multiplied by four with every retry, and doubled twice at most for a blocked event.
    #[must_use]
    pub fn retry_after(self, first_delay: Duration) -> Self {
        Self { first_delay, ..self }
    }

    /// Sets the time after which an event that stays blocked, for example by a lock, becomes a dead
    /// letter, 15 minutes by default.
    #[must_use]
    pub fn give_up_after(self, give_up_after: Duration) -> Self {
        Self { give_up_after, ..self }
    }

    /// Runs the consumer from when the database is migrated until the program stops.
    pub fn start(self, runtime: &Runtime, database: &Database, nats: &Nats, handler: impl Handler) {
        let (database, nats, stop) = (database.clone(), nats.clone(), runtime.stopping());
        runtime.spawn("event consumer", async move {
            tokio::select! {
                () = database.ready() => {
                    self.run(database.pool().clone(), nats, handler, stop).await;
                }
                () = stop.cancelled() => {}
            }
            Ok(())
        });
    }

    /// Consumes until `stop` is cancelled, then finishes the current batch.
    pub async fn run(
        self,
        pool: PgPool,
        nats: Nats,
        handler: impl Handler,
        stop: CancellationToken,
    ) {
        let mut down = false;
        telemetry::describe();
        dead_letter::count(self.name, 0);
        retry::record_parked(&self, (0.0, 0.0));
        while !stop.is_cancelled() {
            let ended = self.session(&pool, &nats, &handler, &stop, &mut down).await;
            retry::record_parked(&self, (0.0, 0.0));
            let Err(error) = ended else { continue };
            if !std::mem::replace(&mut down, true) {
                tracing::warn!(consumer = self.name, %error, "cannot use the inbox; retrying");
            }
            tokio::select! {
                () = sleep(RETRY_INTERVAL) => {}
                () = stop.cancelled() => {}
            }
        }
        // The client sends the last acknowledgements in the background.
        let _ = timeout(Duration::from_secs(1), nats.client().flush()).await;
    }

    /// Opens a connection, waits for the lock, and consumes until the connection is lost.
    async fn session(
        &self,
        pool: &PgPool,
        nats: &Nats,
        handler: &impl Handler,
        stop: &CancellationToken,
        down: &mut bool,
    ) -> Result<(), Error> {
        let mut session = Session::open(pool, self, handler, LIMITS).await?;
        while !session.try_lock().await? {
            tokio::select! {
                () = sleep(RETRY_INTERVAL) => {}
                () = stop.cancelled() => return Ok(()),
            }
        }
        *down = false;
        tracing::info!(consumer = self.name, stream = self.stream.name(), "consuming events");
        let parked = ParkedSignal::default();
        // There may be events that were parked before.
        parked.add();
        let retrier = Retrier { consumer: self, pool, nats, handler, parked: parked.clone() };
        let mut subscription = Subscription::new(nats, self);
        let ended = tokio::select! {
            ended = self.consume(nats, &mut session, &mut subscription, &parked, stop) => ended,
            () = retrier.run() => Ok(()),
        };
        subscription.reject_all().await;
        ended
    }

    async fn consume(
        &self,
        nats: &Nats,
        session: &mut Session<'_, impl Handler>,
        subscription: &mut Subscription<'_>,
        parked: &ParkedSignal,
        stop: &CancellationToken,
    ) -> Result<(), Error> {
        while !stop.is_cancelled() {
            let deliveries = subscription.next(stop).await;
            if deliveries.is_empty() {
                session.ping().await?;
                continue;
            }
            let done = tokio::select! {
                done = self.apply(nats, session, parked, &deliveries) => done,
                () = subscription.keep_alive(&deliveries) => Ok(()),
            };
            // If the connection is lost, the rest is redelivered in order.
            for delivery in &deliveries {
                delivery.reject(None).await;
            }
            done?;
        }
        Ok(())
    }
}
