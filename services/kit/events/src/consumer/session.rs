//! A connection of a consumer to its database, and the transactions in which events are applied.

use std::{
    iter::successors,
    panic::AssertUnwindSafe,
    time::{Duration, Instant},
};

use assay_proto::Fault;
use futures::FutureExt as _;
use sqlx::{Connection as _, Error, PgConnection, PgPool};
use tokio::time::timeout;
use tracing::Instrument as _;
use uuid::Uuid;

use super::{Consumer, Handler, inbox, parked, received::Received};
use crate::connection::{self, within};

/// How long a transaction should take: the number of events in one is adapted to that, so that it
/// holds no lock for long.
const SLICE: Duration = Duration::from_millis(100);

/// Maximum number of events in a transaction.
const MOST: usize = 200;

/// How long beginning a transaction, its note in the inbox and its commit may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// How long a session bears with an event.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// For the whole event.
    pub(super) event: Duration,
    /// For one statement of it, as PostgreSQL reads it.
    pub(super) statement: &'static str,
    /// For a lock that somebody else has.
    pub(super) lock: &'static str,
}

/// How far events were applied.
pub(super) struct Outcome {
    /// How many of them have had their effect.
    pub(super) applied: usize,
    /// Why the next one has not.
    pub(super) fault: Option<Fault>,
}

/// A connection of its own. If it is lost, so are its lock and its transaction: who consumes next
/// cannot come into the way of who consumed before.
pub(super) struct Session<'a, H> {
    pub(super) connection: PgConnection,
    consumer: &'a Consumer,
    handler: &'a H,
    limits: Limits,
    /// How many events go into one transaction.
    slice: usize,
}

impl<'a, H: Handler> Session<'a, H> {
    pub(super) async fn open(
        pool: &PgPool,
        consumer: &'a Consumer,
        handler: &'a H,
        limits: Limits,
    ) -> Result<Self, Error> {
        let options = connection::options(pool, "assay consumer");
        let options = options
            .options([("statement_timeout", limits.statement), ("lock_timeout", limits.lock)]);
        let connection = PgConnection::connect_with(&options);
        let connection = within(connection::PATIENCE, connection).await?;
        Ok(Self { connection, consumer, handler, limits, slice: MOST })
    }

    /// Becomes the one that consumes, unless another one does.
    pub(super) async fn try_lock(&mut self) -> Result<bool, Error> {
        let Consumer { name, stream, .. } = self.consumer;
        let lock = format!("assay consumer {name} of {}", stream.name());
        connection::try_lock(&mut self.connection, &lock).await
    }

    /// Shows PostgreSQL that the program lives, and the program that the connection does.
    pub(super) async fn ping(&mut self) -> Result<(), Error> {
        within(connection::PATIENCE, self.connection.ping()).await
    }

    /// Applies events of one customer in order, up to the first that fails. `were_parked`: some may
    /// be parked, and are not any more. Fails only if the connection is lost.
    pub(super) async fn apply(
        &mut self,
        events: &[&Received],
        were_parked: bool,
    ) -> Result<Outcome, Error> {
        let mut outcome = Outcome { applied: 0, fault: None };
        while outcome.applied < events.len() && outcome.fault.is_none() {
            let slice = &events[outcome.applied..];
            let slice = &slice[..slice.len().min(self.slice)];
            let Outcome { applied, fault } = self.apply_slice(slice, were_parked).await?;
            outcome.applied += applied;
            outcome.fault = fault;
        }
        Ok(outcome)
    }

    /// Applies events in one transaction. If one fails, those before it are applied without it.
    async fn apply_slice(
        &mut self,
        events: &[&Received],
        were_parked: bool,
    ) -> Result<Outcome, Error> {
        let mut outcome = Outcome { applied: events.len(), fault: None };
        while outcome.applied > 0 {
            let (begun, mut at) = (Instant::now(), 0);
            match self.attempt(&events[..outcome.applied], were_parked, &mut at).await {
                Ok(()) => {
                    self.adapt(outcome.applied, begun.elapsed());
                    return Ok(outcome);
                }
                Err(fault) => {
                    self.ping().await?;
                    outcome = Outcome { applied: at, fault: Some(fault) };
                }
            }
        }
        Ok(outcome)
    }

    fn adapt(&mut self, applied: usize, took: Duration) {
        if took > SLICE {
            self.slice = (applied / 2).max(1);
        } else if applied == self.slice && took < SLICE / 2 {
            self.slice = (self.slice * 2).min(MOST);
        }
    }

    /// Applies events in one transaction; `at` is how many were, when it fails. A handler that
    /// panics fails.
    async fn attempt(
        &mut self,
        events: &[&Received],
        were_parked: bool,
        at: &mut usize,
    ) -> Result<(), Fault> {
        let work = AssertUnwindSafe(self.transaction(events, were_parked, at)).catch_unwind();
        work.await.unwrap_or_else(|_| Err(Fault::internal("the handler panicked")))
    }

    async fn transaction(
        &mut self,
        events: &[&Received],
        were_parked: bool,
        at: &mut usize,
    ) -> Result<(), Fault> {
        let name = self.consumer.name;
        let ids: Vec<Uuid> = events.iter().map(|event| event.id()).collect();
        let mut tx = within(PATIENCE, self.connection.begin()).await?;
        let mut fresh = within(PATIENCE, inbox::enter(&mut *tx, name, &ids)).await?;
        let count = fresh.len() as u64;
        for (place, event) in events.iter().enumerate() {
            *at = place;
            // An event whose type this release does not know has no effect.
            let Some(event_type) = event.event_type() else { continue };
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
                let handled = self.handler.handle(&mut tx, event_type, event).instrument(span);
                let handled = timeout(self.limits.event, handled).await;
                handled.unwrap_or(Err(Fault::Unavailable("the database")))?;
            }
        }
        if were_parked {
            within(PATIENCE, parked::remove(&mut *tx, name, &ids)).await?;
        }
        within(PATIENCE, tx.commit()).await?;
        metrics::counter!("assay_events_applied_total", "consumer" => name).increment(count);
        Ok(())
    }
}

/// A fault with all its causes.
pub(super) fn causes(fault: &Fault) -> String {
    let chain = successors(Some(fault as &dyn std::error::Error), |error| error.source());
    chain.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}
