//! Retries of parked events. An event that could not be applied at once is parked in the database,
//! so that neither NATS nor other events wait for it.
//!
//! An event that a handler rejects is parked alone. If an event is blocked, for example by a lock,
//! later events of its customer are probably blocked too: they are parked behind it, and retried in
//! turn with those of other customers.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use assay_proto::{CustomerId, Fault};
use sqlx::{Error, PgPool};
use tokio::{
    sync::Notify,
    time::{Instant, sleep, timeout},
};

use super::{
    dead_letter,
    definition::{Consumer, Handler},
    parked::{self, Parked},
    received::Received,
    session::{Limits, Outcome, Session, causes},
};
use crate::{
    Nats,
    connection::{RETRY_INTERVAL, STATEMENT_TIMEOUT, within},
};

/// Number of attempts after which an event becomes a dead letter.
const MOST_ATTEMPTS: i32 = 5;

/// Maximum number of events of a customer in a batch.
const BATCH: i64 = 200;

/// Maximum number of bytes of a batch: about those of a transaction, as further events are read again.
const BYTES: i64 = 256 * 1024;

/// Interval of the search for events that are due.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// Interval of metrics.
const METRICS_INTERVAL: Duration = Duration::from_secs(5);

/// Limits of retries, for which only other parked events wait.
const LIMITS: Limits = Limits { event: Duration::from_secs(20), statement: "10s", lock: "400ms" };

/// Signals to the retrier that events are parked.
#[derive(Clone, Default)]
pub(super) struct ParkedSignal(Arc<State>);

#[derive(Default)]
struct State {
    /// Number of times that events were parked.
    parked: AtomicU64,
    /// That number when no event was left.
    cleared: AtomicU64,
    added: Notify,
}

impl ParkedSignal {
    /// Signals that an event is parked.
    pub(super) fn add(&self) {
        self.0.parked.fetch_add(1, Ordering::Relaxed);
        self.0.added.notify_one();
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.parked.load(Ordering::Relaxed) <= self.0.cleared.load(Ordering::Relaxed)
    }

    fn count(&self) -> u64 {
        self.0.parked.load(Ordering::Relaxed)
    }

    fn clear(&self, until: u64) {
        self.0.cleared.store(until, Ordering::Relaxed);
    }

    async fn added(&self) {
        self.0.added.notified().await;
    }
}

/// Returns the backoff of an event after so many failures.
pub(super) fn backoff(consumer: &Consumer, fault: &Fault, failures: i32) -> Duration {
    let earlier = failures.unsigned_abs().saturating_sub(1);
    if is_blocked(fault) {
        return consumer.first_delay * 2_u32.pow(earlier.min(2));
    }
    consumer.first_delay * 4_u32.pow(earlier.min(4))
}

/// Whether something else than the event itself caused the failure.
pub(super) fn is_blocked(fault: &Fault) -> bool {
    matches!(fault, Fault::Unavailable(_) | Fault::Busy(_))
}

/// Retries parked events.
pub(super) struct Retrier<'a, H> {
    pub(super) consumer: &'a Consumer,
    pub(super) pool: &'a PgPool,
    pub(super) nats: &'a Nats,
    pub(super) handler: &'a H,
    pub(super) parked: ParkedSignal,
}

impl<H: Handler> Retrier<'_, H> {
    /// Runs until dropped.
    pub(super) async fn run(&self) {
        loop {
            if let Err(error) = self.retry_all().await {
                tracing::debug!(consumer = self.consumer.name, %error, "cannot retry parked events yet");
                sleep(RETRY_INTERVAL).await;
            }
            if self.parked.is_empty() {
                self.parked.added().await;
            }
        }
    }

    /// Retries parked events until none is left.
    async fn retry_all(&self) -> Result<(), Error> {
        let mut session = Session::open(self.pool, self.consumer, self.handler, LIMITS).await?;
        let mut measured: Option<Instant> = None;
        loop {
            if measured.is_none_or(|measured| measured.elapsed() > METRICS_INTERVAL) {
                measured = Some(Instant::now());
                let state = parked::measure(&mut session.connection, self.consumer);
                record_parked(self.consumer, within(STATEMENT_TIMEOUT, state).await?);
            }
            let count = self.parked.count();
            let customers = parked::due(&mut session.connection, self.consumer);
            let customers = within(STATEMENT_TIMEOUT, customers).await?;
            for &customer in &customers {
                self.retry_customer(&mut session, customer).await?;
            }
            if !customers.is_empty() {
                continue;
            }
            let exist = parked::exist(&mut session.connection, self.consumer);
            if !within(STATEMENT_TIMEOUT, exist).await? {
                self.parked.clear(count);
                record_parked(self.consumer, (0.0, 0.0));
                return Ok(());
            }
            let _ =
                timeout(POLL_INTERVAL.min(self.consumer.first_delay), self.parked.added()).await;
        }
    }

    /// Applies the first due events of a customer, up to one that fails.
    async fn retry_customer(
        &self,
        session: &mut Session<'_, H>,
        customer: CustomerId,
    ) -> Result<(), Error> {
        let due = parked::read(&mut session.connection, self.consumer, customer, BATCH, BYTES);
        let due = within(STATEMENT_TIMEOUT, due).await?;
        let events: Result<Vec<_>, _> =
            due.iter().map(|parked| Received::read(&parked.payload)).collect();
        // Only valid events are parked.
        let events = events.map_err(|error| Error::Decode(error.into()))?;
        let events: Vec<_> = events.iter().collect();
        let Outcome { applied, fault, pause } = session.apply(&events, true).await?;
        if let Some((parked, fault)) = due.get(applied).zip(fault) {
            self.handle_failure(session, parked, &fault).await?;
        }
        sleep(pause).await;
        Ok(())
    }

    /// Postpones an event that has failed again, or moves it to the dead letters.
    async fn handle_failure(
        &self,
        session: &mut Session<'_, H>,
        parked: &Parked,
        fault: &Fault,
    ) -> Result<(), Error> {
        let (consumer, failures) = (self.consumer, parked.failures + 1);
        let is_blocked = is_blocked(fault);
        record_failure(consumer, parked.event_id, failures, fault);
        let mut delay = backoff(consumer, fault, failures);
        if failures >= MOST_ATTEMPTS && (!is_blocked || parked.age() >= consumer.give_up_after) {
            let letter = dead_letter::Letter {
                subject: &parked.subject,
                sequence: parked.sequence(),
                payload: parked.payload.clone(),
            };
            let reason = causes(fault);
            match dead_letter::keep(self.nats, consumer, letter, &reason, failures).await {
                Ok(()) => {
                    let events = [parked.event_id];
                    let removed = parked::remove(&mut session.connection, consumer.name, &events);
                    return within(STATEMENT_TIMEOUT, removed).await;
                }
                Err(error) => {
                    tracing::warn!(consumer = consumer.name, %error, "cannot store a dead letter; retrying");
                    delay = delay.max(STATEMENT_TIMEOUT);
                }
            }
        }
        let connection = &mut session.connection;
        let postponed = parked::postpone(connection, consumer, parked, is_blocked, delay);
        within(STATEMENT_TIMEOUT, postponed).await
    }
}

/// Counts and logs a failed attempt.
pub(super) fn record_failure(consumer: &Consumer, event: uuid::Uuid, attempts: i32, fault: &Fault) {
    let name = consumer.name;
    metrics::counter!("assay_events_failed_total", "consumer" => name).increment(1);
    tracing::warn!(consumer = name, %event, attempts, error = causes(fault), "event failed");
}

/// Records the number of parked events, and the age of the oldest one in seconds.
pub(super) fn record_parked(consumer: &Consumer, (count, age): (f64, f64)) {
    let (consumer, stream) = (consumer.name, consumer.stream.name());
    metrics::gauge!("assay_events_parked", "consumer" => consumer, "stream" => stream.clone())
        .set(count);
    metrics::gauge!("assay_events_parked_age_seconds", "consumer" => consumer, "stream" => stream)
        .set(age);
}
