//! The database's side of a consumer: a connection with the right to consume, and what becomes of
//! the events that are applied through it.

use std::{iter::successors, panic::AssertUnwindSafe, time::Duration};

use assay_proto::Fault;
use futures::FutureExt as _;
use sqlx::{Connection as _, Error, PgConnection, PgPool};
use tokio::time::{sleep, timeout};
use tracing::Instrument as _;
use uuid::Uuid;

use super::{Consumer, Handler, delivery::Delivery, inbox, received::Received};
use crate::connection::{self, within};

/// How often an event is tried before it becomes a dead letter.
const TRIES: i32 = 5;

/// How often an event is tried on the spot that fails for something that may pass in a moment, such
/// as a deadlock.
const TRIES_ON_THE_SPOT: u32 = 3;

/// How many first delays later an event is tried again that needs something that is not available.
const UNAVAILABLE: u32 = 16;

/// How long a transaction may take: longer than any statement of it.
const PATIENCE: Duration = Duration::from_secs(20);

/// What becomes of a message.
pub(super) enum Verdict {
    /// It has had its effect.
    Applied,
    /// It is to be tried again after a while.
    Again(Duration),
    /// It will never be applied.
    Hopeless { reason: String, tries: i32 },
}

/// A connection of its own. If it is lost, so are its lock and its transaction: who consumes next
/// cannot come into the way of who consumed before.
pub(super) struct Session<'a, H> {
    connection: PgConnection,
    consumer: &'a Consumer,
    handler: &'a H,
}

impl<'a, H: Handler> Session<'a, H> {
    pub(super) async fn open(
        pool: &PgPool,
        consumer: &'a Consumer,
        handler: &'a H,
    ) -> Result<Self, Error> {
        let options = connection::options(pool, "assay consumer");
        let connection = PgConnection::connect_with(&options);
        let connection = within(connection::PATIENCE, connection).await?;
        Ok(Self { connection, consumer, handler })
    }

    /// Becomes the one that consumes, unless another one does.
    pub(super) async fn try_lock(&mut self) -> Result<bool, Error> {
        let Consumer { name, stream, .. } = self.consumer;
        let lock = format!("assay consumer {name} of {}", stream.name());
        connection::try_lock(&mut self.connection, &lock).await
    }

    /// Applies messages, all at once if that works. Fails only if the connection is lost.
    pub(super) async fn apply(&mut self, group: &[Delivery]) -> Result<Vec<Verdict>, Error> {
        if group.len() > 1 {
            let ours = group.iter().filter(|delivery| !delivery.is_not_for(self.consumer.name));
            let events: Vec<_> = ours.filter_map(|delivery| delivery.event.as_ref().ok()).collect();
            if self.attempt(&events).await.is_ok() {
                return Ok(group.iter().map(|_| Verdict::Applied).collect());
            }
        }
        let mut verdicts = Vec::with_capacity(group.len());
        for delivery in group {
            verdicts.push(self.apply_one(delivery).await?);
        }
        Ok(verdicts)
    }

    async fn apply_one(&mut self, delivery: &Delivery) -> Result<Verdict, Error> {
        let event = match &delivery.event {
            _ if delivery.is_not_for(self.consumer.name) => return Ok(Verdict::Applied),
            Err(error) => {
                let reason = format!("this is no event: {error}");
                return Ok(Verdict::Hopeless { reason, tries: 1 });
            }
            Ok(event) => event,
        };
        for attempt in 1..=TRIES_ON_THE_SPOT {
            match self.attempt(&[event]).await {
                Ok(()) => return Ok(Verdict::Applied),
                Err(Fault::Unavailable(_) | Fault::Busy(_)) => {
                    within(connection::PATIENCE, self.connection.ping()).await?;
                    sleep(Duration::from_millis(10) * attempt).await;
                }
                Err(fault) => return self.failed(event, &fault).await,
            }
        }
        tracing::warn!(consumer = self.consumer.name, event = %event.id(), "event put off");
        Ok(Verdict::Again(self.consumer.first_delay * UNAVAILABLE))
    }

    /// Applies events in one transaction. A handler that panics fails.
    async fn attempt(&mut self, events: &[&Received]) -> Result<(), Fault> {
        let work = AssertUnwindSafe(self.transaction(events)).catch_unwind();
        match timeout(PATIENCE, work).await {
            Ok(Ok(done)) => done,
            Ok(Err(_)) => Err(Fault::internal("the handler panicked")),
            Err(_) => Err(Fault::Unavailable("the database")),
        }
    }

    async fn transaction(&mut self, events: &[&Received]) -> Result<(), Fault> {
        let name = self.consumer.name;
        let ids: Vec<Uuid> = events.iter().map(|event| event.id()).collect();
        let mut tx = self.connection.begin().await?;
        let mut fresh = inbox::enter(&mut *tx, name, &ids).await?;
        let count = fresh.len() as u64;
        for event in events {
            if fresh.remove(&event.id()) {
                let span = tracing::info_span!(
                    parent: None,
                    "apply event",
                    otel.kind = "consumer",
                    messaging.system = "nats",
                    messaging.operation.type = "process",
                    messaging.message.id = %event.id(),
                    consumer = name,
                );
                assay_runtime::trace::follow_map(&span, &event.trace());
                self.handler.handle(&mut tx, event).instrument(span).await?;
            }
        }
        tx.commit().await?;
        metrics::counter!("assay_events_applied_total", "consumer" => name).increment(count);
        Ok(())
    }

    async fn failed(&mut self, event: &Received, fault: &Fault) -> Result<Verdict, Error> {
        let Consumer { name, first_delay, .. } = *self.consumer;
        let note = inbox::note_failure(&mut self.connection, name, event.id());
        let tries = within(connection::PATIENCE, note).await?;
        let reason = causes(fault);
        metrics::counter!("assay_events_failed_total", "consumer" => name).increment(1);
        tracing::warn!(consumer = name, event = %event.id(), tries, error = reason, "event failed");
        if tries >= TRIES {
            return Ok(Verdict::Hopeless { reason, tries });
        }
        Ok(Verdict::Again(first_delay * 4_u32.pow(tries.unsigned_abs() - 1)))
    }
}

fn causes(fault: &Fault) -> String {
    let chain = successors(Some(fault as &dyn std::error::Error), |error| error.source());
    chain.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}
