//! Applies the events of another service, each once.

pub(crate) mod dead_letter;
pub(crate) mod delivery;
mod inbox;
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
    delivery::Delivery,
    session::{Session, Verdict},
    subscription::Subscription,
};
use crate::{Nats, Stream, connection::PAUSE, nats};

/// What a service does about the events of another one.
pub trait Handler: Send + Sync + 'static {
    /// Applies an event. What it writes into the transaction is committed together with the note
    /// that the event was applied; several events may share the transaction.
    ///
    /// An event that does not concern the service is applied by doing nothing. An event that fails
    /// comes again, after others; so do not rely on the order of events, look at revisions.
    /// [`Fault::Unavailable`] is tried until it works, any other fault a few times.
    fn handle(
        &self,
        tx: &mut PgTransaction<'_>,
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
}

impl Consumer {
    /// The consumer of all events of a stream. The name, usually that of the consuming service,
    /// is what JetStream and the inbox remember it by.
    pub fn new(name: &'static str, stream: Stream) -> Self {
        Self { name, stream, filter: stream.subjects(), first_delay: Duration::from_secs(1) }
    }

    /// Only events of one kind of record, such as `test_case`.
    #[must_use]
    pub fn only(self, noun: &str) -> Self {
        Self { filter: format!("assay.{}.*.{noun}.*", self.stream.service()), ..self }
    }

    /// How long an event that fails waits before it is tried again; every further time it waits
    /// four times as long. A second, unless set.
    #[must_use]
    pub fn retry_after(self, first_delay: Duration) -> Self {
        Self { first_delay, ..self }
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
        dead_letter::count(self.name, 0);
        while !stop.is_cancelled() {
            let Err(error) = self.term(&pool, &nats, &handler, &stop, &mut down).await else {
                continue;
            };
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
        let mut session = Session::open(pool, self, handler).await?;
        while !session.try_lock().await? {
            tokio::select! {
                () = sleep(PAUSE) => {}
                () = stop.cancelled() => return Ok(()),
            }
        }
        *down = false;
        tracing::info!(consumer = self.name, stream = self.stream.name(), "consuming events");
        let mut subscription = Subscription::new(nats, self);
        while !stop.is_cancelled() {
            let deliveries = subscription.next(stop).await;
            self.apply(nats, &mut session, &deliveries).await?;
        }
        Ok(())
    }

    /// Applies what was delivered, as much as possible at once. If the database is lost, the rest
    /// goes back to where it came from, in order.
    async fn apply(
        &self,
        nats: &Nats,
        session: &mut Session<'_, impl Handler>,
        deliveries: &[Delivery],
    ) -> Result<(), Error> {
        let mut applied = 0;
        for group in deliveries.chunk_by(Delivery::goes_with) {
            match session.apply(group).await {
                Ok(verdicts) => {
                    for (delivery, verdict) in group.iter().zip(verdicts) {
                        self.settle(nats, delivery, verdict).await;
                    }
                }
                Err(error) => {
                    for delivery in &deliveries[applied..] {
                        delivery.give_back(None).await;
                    }
                    return Err(error);
                }
            }
            applied += group.len();
        }
        Ok(())
    }

    async fn settle(&self, nats: &Nats, delivery: &Delivery, verdict: Verdict) {
        match verdict {
            Verdict::Applied => delivery.acknowledge().await,
            Verdict::Again(delay) => delivery.give_back(Some(delay)).await,
            Verdict::Hopeless { reason, tries } => {
                match dead_letter::keep(nats, self, delivery, &reason, tries).await {
                    Ok(()) => delivery.terminate().await,
                    Err(error) => {
                        tracing::warn!(consumer = self.name, %error, "no dead letter; trying again");
                        delivery.give_back(Some(nats::PATIENCE)).await;
                    }
                }
            }
        }
    }
}
