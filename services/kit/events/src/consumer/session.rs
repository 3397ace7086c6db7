//! The database connection of a consumer, and the transactions that apply events.
//!
//! The connection holds the advisory lock that makes this replica the active consumer. So the lock and the
//! transactions end together: a replica that has lost its connection cannot apply anything, and another
//! one takes over. Events of one customer share a transaction, whose size follows the time that the last
//! one took.

use std::{
    panic::AssertUnwindSafe,
    time::{Duration, Instant},
};

use assay_fair::pause_after;
use assay_proto::Fault;
use assay_rpc::parts::bounded;
use futures::FutureExt as _;
use sqlx::{Connection as _, Error, PgConnection, PgPool};
use uuid::Uuid;

use super::{
    attempt::{Attempt, Limits},
    definition::{Consumer, Handler},
    inbox, parked,
    received::Received,
};
use crate::connection::{self, within};

/// Target duration of a transaction, to which the number of events in it adapts, so that locks are
/// short.
const TARGET: Duration = Duration::from_millis(100);

/// Duration of a transaction after which further events of its customer wait, so that those of a large
/// change do not delay requests.
const LONG: Duration = Duration::from_millis(20);

/// First and maximum number of events in a transaction. Several events have at most as much data as the
/// rows of a statement.
const FIRST: usize = 20;
const MOST: usize = 1000;

/// Maximum duration of the start of a transaction, its insert into the inbox, and its commit.
const TRANSACTION_TIMEOUT: Duration = Duration::from_secs(5);

/// The result of applying several events.
pub(super) struct Outcome {
    /// Number of applied events.
    pub(super) applied: usize,
    /// Failure of the next one.
    pub(super) fault: Option<Fault>,
    /// Time for which further events of the customer wait.
    pub(super) pause: Duration,
}

/// A connection with the lock of the consumer. If it is lost, so are the lock and the transaction,
/// so that the next consumer never works at the same time as the previous one.
pub(super) struct Session<'a, H> {
    pub(super) connection: PgConnection,
    consumer: &'a Consumer,
    handler: &'a H,
    limits: Limits,
    /// Number of events in a transaction.
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
        let connection = within(connection::STATEMENT_TIMEOUT, connection).await?;
        Ok(Self { connection, consumer, handler, limits, slice: FIRST })
    }

    /// Becomes the active consumer, unless there is one.
    pub(super) async fn try_lock(&mut self) -> Result<bool, Error> {
        let Consumer { name, stream, .. } = self.consumer;
        let lock = format!("assay consumer {name} of {}", stream.name());
        connection::try_lock(&mut self.connection, &lock).await
    }

    /// Keeps the session open. Fails if the connection is lost.
    pub(super) async fn ping(&mut self) -> Result<(), Error> {
        within(connection::STATEMENT_TIMEOUT, self.connection.ping()).await
    }

    /// Applies the first of the events of one customer, in one transaction. If one fails, those before
    /// it are applied without it. If `may_be_parked`, applied events are removed from the parked
    /// ones. Fails only if the connection is lost.
    pub(super) async fn apply(
        &mut self,
        events: &[&Received],
        may_be_parked: bool,
    ) -> Result<Outcome, Error> {
        let events = &events[..events.len().min(self.slice)];
        let events = bounded(events, |event| event.size()).next().unwrap_or_default();
        let begun = Instant::now();
        let (applied, fault) = self.apply_slice(events, may_be_parked).await?;
        let took = Some(begun.elapsed()).filter(|took| *took > LONG);
        Ok(Outcome { applied, fault, pause: took.map(pause_after).unwrap_or_default() })
    }

    /// Returns the number of applied events, and the failure of the next one.
    async fn apply_slice(
        &mut self,
        events: &[&Received],
        may_be_parked: bool,
    ) -> Result<(usize, Option<Fault>), Error> {
        let (mut count, mut failure) = (events.len(), None);
        let mut is_gathered = count > 1;
        while count > 0 {
            let begun = Instant::now();
            let mut attempt = Attempt { events: &events[..count], is_gathered, at: Some(0) };
            match self.attempt(&mut attempt, may_be_parked).await {
                Ok(()) => {
                    self.adapt(count, begun.elapsed());
                    break;
                }
                Err(fault) => {
                    self.ping().await?;
                    if let Some(at) = attempt.at {
                        (count, failure) = (at, Some(fault));
                    } else {
                        is_gathered = false;
                        self.slice = (self.slice / 2).max(1);
                    }
                }
            }
        }
        Ok((count, failure))
    }

    fn adapt(&mut self, applied: usize, took: Duration) {
        if took > TARGET {
            self.slice = (applied / 2).max(1);
        } else if applied == self.slice && took < TARGET / 2 {
            self.slice = (self.slice * 2).min(MOST);
        }
    }

    /// Applies events in one transaction. A panic of the handler counts as a failure.
    async fn attempt(
        &mut self,
        attempt: &mut Attempt<'_>,
        may_be_parked: bool,
    ) -> Result<(), Fault> {
        let work = AssertUnwindSafe(self.transaction(attempt, may_be_parked)).catch_unwind();
        work.await.unwrap_or_else(|_| Err(Fault::internal("the handler panicked")))
    }

    async fn transaction(
        &mut self,
        attempt: &mut Attempt<'_>,
        may_be_parked: bool,
    ) -> Result<(), Fault> {
        let name = self.consumer.name;
        let ids: Vec<Uuid> = attempt.events.iter().map(|event| event.id()).collect();
        let mut tx = within(TRANSACTION_TIMEOUT, self.connection.begin()).await?;
        let fresh = within(TRANSACTION_TIMEOUT, inbox::enter(&mut tx, name, &ids)).await?;
        let count = fresh.len() as u64;
        attempt.handle(self.handler, &mut tx, fresh, self.limits, name).await?;
        if may_be_parked {
            within(TRANSACTION_TIMEOUT, parked::remove(&mut *tx, name, &ids)).await?;
        }
        within(TRANSACTION_TIMEOUT, tx.commit()).await?;
        metrics::counter!("assay_events_applied_total", "consumer" => name).increment(count);
        Ok(())
    }
}
