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
use assay_work::{MOST_TAKEN, NO_END, causes};
use sqlx::{Error, PgPool};
use tokio::{
    sync::Notify,
    time::{Instant, sleep, timeout},
};

use super::{
    attempt::Limits,
    definition::{Consumer, Handler},
    parked::{self, Parked},
    received::Received,
    session::{Outcome, Session},
};
use crate::connection::{RETRY_INTERVAL, STATEMENT_TIMEOUT, within};

/// The reason of a message that is a dead letter because it is not an event.
pub(super) const INVALID: &str = "not a valid event";

/// Number of attempts after which an event becomes a dead letter.
const MOST_ATTEMPTS: i32 = 5;

/// Maximum number of events of a customer in a batch.
const BATCH: i64 = 200;

/// Maximum number of bytes of a batch: about those of a transaction, as further events are read again.
const BYTES: i64 = 256 * 1024;

/// Interval of the search for events that are due.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// Interval of the search for dead letters that an operator retries.
const LOOK_INTERVAL: Duration = Duration::from_secs(2);

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
    pub(super) handler: &'a H,
    pub(super) parked: ParkedSignal,
    /// Whether this program has retried before, and lost the connection.
    pub(super) is_interrupted: bool,
}

impl<H: Handler> Retrier<'_, H> {
    /// Runs until dropped.
    pub(super) async fn run(mut self) {
        loop {
            if let Err(error) = self.retry_all().await {
                tracing::debug!(consumer = self.consumer.name, %error, "cannot retry parked events yet");
                self.is_interrupted = true;
                sleep(RETRY_INTERVAL).await;
            }
            while self.parked.is_empty() && !self.are_retried().await {}
        }
    }

    /// Waits until an event is parked, or until it may be that an operator retries dead letters. Returns
    /// whether there is a parked event.
    async fn are_retried(&self) -> bool {
        if timeout(LOOK_INTERVAL, self.parked.added()).await.is_ok() {
            return true;
        }
        let exist = within(STATEMENT_TIMEOUT, parked::exist(self.pool, self.consumer)).await;
        exist.unwrap_or_default()
    }

    /// Retries parked events until none is left.
    async fn retry_all(&self) -> Result<(), Error> {
        let mut session = Session::open(self.pool, self.consumer, self.handler, LIMITS).await?;
        if self.is_interrupted {
            let taken_back = parked::take_back(&mut session.connection, self.consumer);
            within(STATEMENT_TIMEOUT, taken_back).await?;
        }
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

    /// Applies the first due events of a customer, up to one that fails. The attempt is counted for the
    /// first event before, and alone if an attempt did not come to an end: then it may be the cause.
    async fn retry_customer(
        &self,
        session: &mut Session<'_, H>,
        customer: CustomerId,
    ) -> Result<(), Error> {
        let taken = parked::take(&mut session.connection, self.consumer, customer);
        let taken = within(STATEMENT_TIMEOUT, taken).await?;
        let limit = if taken > 1 { 1 } else { BATCH };
        let due = parked::read(&mut session.connection, self.consumer, customer, limit, BYTES);
        let due = within(STATEMENT_TIMEOUT, due).await?;
        let Some(first) = due.first() else { return Ok(()) };
        if taken > MOST_TAKEN {
            return self.give_up(session, first, first.failures + taken, NO_END).await;
        }
        // Valid events come before a message that is not, which an operator has retried.
        let read = due.iter().map_while(|parked| Received::read(&parked.payload).ok());
        let events: Vec<_> = read.collect();
        let events: Vec<_> = events.iter().collect();
        if events.is_empty() {
            return self.give_up(session, first, 1, INVALID).await;
        }
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
        let delay = backoff(consumer, fault, failures);
        if failures >= MOST_ATTEMPTS && (!is_blocked || parked.age() >= consumer.give_up_after) {
            return self.give_up(session, parked, failures, &causes(fault)).await;
        }
        let (connection, failed) = (&mut session.connection, (parked, &causes(fault)[..]));
        let postponed = parked::postpone(connection, consumer, failed, is_blocked, delay);
        within(STATEMENT_TIMEOUT, postponed).await
    }

    async fn give_up(
        &self,
        session: &mut Session<'_, H>,
        parked: &Parked,
        attempts: i32,
        reason: &str,
    ) -> Result<(), Error> {
        let (connection, why) = (&mut session.connection, (attempts, reason));
        let given_up = parked::give_up(connection, self.consumer, parked.event_id, why);
        within(STATEMENT_TIMEOUT, given_up).await
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
