//! Applies the events of another service, each once.

mod apply;
mod aside;
pub(crate) mod dead_letter;
pub(crate) mod delivery;
mod inbox;
mod parked;
mod received;
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
    aside::{Aside, Retrier},
    session::{Limits, Session},
    subscription::Subscription,
};
use crate::{EventType, Nats, Stream, connection::PAUSE, telemetry};

/// What others wait for: longer than these, an event waits aside.
const LIMITS: Limits =
    Limits { event: Duration::from_millis(900), statement: "800ms", lock: "400ms" };

/// How long an event that something is in the way of is tried, before it becomes a dead letter.
const GIVE_UP_AFTER: Duration = Duration::from_mins(15);

/// What a service does about the events of another one.
pub trait Handler: Send + Sync + 'static {
    /// Applies an event. What it writes into the transaction is committed together with the note
    /// that the event was applied; several events may share the transaction.
    ///
    /// An event that does not concern the service is applied by doing nothing. Events of types that
    /// this release does not know, which a later one publishes, do not reach the handler. An event that fails
    /// is parked and tried again, after others; so do not rely on the order of events, look at
    /// revisions. It becomes a dead letter after five attempts; if the fault is
    /// [`Fault::Unavailable`], such as a lock that is not released, only after a quarter of an hour.
    /// An event that takes longer than a second is parked, too, and given 20 seconds then.
    fn handle(
        &self,
        tx: &mut PgTransaction<'_>,
        event_type: EventType,
        event: &Received,
    ) -> impl Future<Output = Result<(), Fault>> + Send;
}

/// A durable consumer of a stream.
///
/// Of all replicas of a service one consumes; the others wait to take its place. So events of the
/// same record are applied in order, as long as none fails.
#[derive(Clone, Debug)]
pub struct Consumer {
    name: &'static str,
    stream: Stream,
    filter: String,
    first_delay: Duration,
    give_up_after: Duration,
}

impl Consumer {
    /// The consumer of all events of a stream. The name, usually that of the consuming service,
    /// is what JetStream and the inbox remember it by.
    pub fn new(name: &'static str, stream: Stream) -> Self {
        let (filter, first_delay) = (stream.subjects(), Duration::from_secs(1));
        Self { name, stream, filter, first_delay, give_up_after: GIVE_UP_AFTER }
    }

    /// Only events of one kind of record, such as `test_case`.
    #[must_use]
    pub fn only(self, noun: &str) -> Self {
        Self { filter: format!("assay.{}.*.{noun}.*", self.stream.service()), ..self }
    }

    /// How long an event that fails waits before it is tried again; every further time it waits
    /// four times as long, one that something is in the way of at most that long. A second, unless
    /// set.
    #[must_use]
    pub fn retry_after(self, first_delay: Duration) -> Self {
        Self { first_delay, ..self }
    }

    /// How long an event is tried that something is in the way of, such as a lock, before it becomes
    /// a dead letter. A quarter of an hour, unless set.
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

    /// Consumes until told to stop; then finishes the batch in hand.
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
        aside::tell(&self, (0.0, 0.0));
        while !stop.is_cancelled() {
            let ended = self.term(&pool, &nats, &handler, &stop, &mut down).await;
            aside::tell(&self, (0.0, 0.0));
            let Err(error) = ended else { continue };
            if !std::mem::replace(&mut down, true) {
                tracing::warn!(consumer = self.name, %error, "no inbox; trying again");
            }
            tokio::select! {
                () = sleep(PAUSE) => {}
                () = stop.cancelled() => {}
            }
        }
        // What was applied last is acknowledged in the background.
        let _ = timeout(Duration::from_secs(1), nats.client().flush()).await;
    }

    /// One connection to the database: from its beginning, over the wait for the lock, to its end.
    async fn term(
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
                () = sleep(PAUSE) => {}
                () = stop.cancelled() => return Ok(()),
            }
        }
        *down = false;
        tracing::info!(consumer = self.name, stream = self.stream.name(), "consuming events");
        let aside = Aside::default();
        // Events that were parked before.
        aside.add();
        let retrier = Retrier { consumer: self, pool, nats, handler, aside: aside.clone() };
        let mut subscription = Subscription::new(nats, self);
        let ended = tokio::select! {
            ended = self.consume(nats, &mut session, &mut subscription, &aside, stop) => ended,
            () = retrier.run() => Ok(()),
        };
        subscription.give_back().await;
        ended
    }

    async fn consume(
        &self,
        nats: &Nats,
        session: &mut Session<'_, impl Handler>,
        subscription: &mut Subscription<'_>,
        aside: &Aside,
        stop: &CancellationToken,
    ) -> Result<(), Error> {
        while !stop.is_cancelled() {
            let deliveries = subscription.next(stop).await;
            if deliveries.is_empty() {
                session.ping().await?;
                continue;
            }
            let done = tokio::select! {
                done = self.apply(nats, session, aside, &deliveries) => done,
                () = subscription.keep(&deliveries) => Ok(()),
            };
            // If the database is lost, the rest goes back to where it came from, in order.
            for delivery in &deliveries {
                delivery.give_back(None).await;
            }
            done?;
        }
        Ok(())
    }
}
