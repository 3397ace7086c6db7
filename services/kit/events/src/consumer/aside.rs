//! Events that could not be applied at once: they are parked in the database, so that neither the
//! broker nor other events wait for them, and tried again beside the others.
//!
//! An event that a handler refuses is parked alone. One that something else is in the way of, such
//! as a lock, may not be the only one: later events of its customer are parked behind it, and tried
//! in turn with those of other customers.

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
    Consumer, Handler, dead_letter,
    parked::{self, Parked},
    received::Received,
    session::{Limits, Session, causes},
};
use crate::{
    Nats,
    connection::{PATIENCE, PAUSE, within},
};

/// How often an event is tried before it becomes a dead letter.
const TRIES: i32 = 5;

/// Maximum number of events, and of their bytes, that are taken of a customer at once.
const BATCH: i64 = 200;
const BYTES: i64 = 2 * 1024 * 1024;

/// How often it is looked for events that are due.
const POLL: Duration = Duration::from_millis(200);

/// How often parked events are counted.
const MEASURE: Duration = Duration::from_secs(5);

/// Nobody waits for what is tried here but other parked events.
const LIMITS: Limits = Limits { event: Duration::from_secs(20), statement: "10s", lock: "400ms" };

/// Whether any event is parked, as those know who park it.
#[derive(Clone, Default)]
pub(super) struct Aside(Arc<State>);

#[derive(Default)]
struct State {
    /// How often events were parked, and how often they had been when none was left.
    parked: AtomicU64,
    cleared: AtomicU64,
    news: Notify,
}

impl Aside {
    /// Notes that an event is parked.
    pub(super) fn add(&self) {
        self.0.parked.fetch_add(1, Ordering::Relaxed);
        self.0.news.notify_one();
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
        self.0.news.notified().await;
    }
}

/// How long an event waits that has failed so often.
pub(super) fn delay(consumer: &Consumer, fault: &Fault, failures: i32) -> Duration {
    let earlier = failures.unsigned_abs().saturating_sub(1);
    if is_passing(fault) {
        return consumer.first_delay * 2_u32.pow(earlier.min(2));
    }
    consumer.first_delay * 4_u32.pow(earlier.min(4))
}

/// Whether the event itself may be good, and something is in its way.
pub(super) fn is_passing(fault: &Fault) -> bool {
    matches!(fault, Fault::Unavailable(_) | Fault::Busy(_))
}

/// Tries parked events again.
pub(super) struct Retrier<'a, H> {
    pub(super) consumer: &'a Consumer,
    pub(super) pool: &'a PgPool,
    pub(super) nats: &'a Nats,
    pub(super) handler: &'a H,
    pub(super) aside: Aside,
}

impl<H: Handler> Retrier<'_, H> {
    /// Works until dropped.
    pub(super) async fn run(&self) {
        loop {
            if let Err(error) = self.empty().await {
                tracing::debug!(consumer = self.consumer.name, %error, "parked events wait");
                sleep(PAUSE).await;
            }
            if self.aside.is_empty() {
                self.aside.added().await;
            }
        }
    }

    /// Tries what is parked until nothing is left.
    async fn empty(&self) -> Result<(), Error> {
        let mut session = Session::open(self.pool, self.consumer, self.handler, LIMITS).await?;
        let mut measured: Option<Instant> = None;
        loop {
            if measured.is_none_or(|measured| measured.elapsed() > MEASURE) {
                measured = Some(Instant::now());
                let state = parked::measure(&mut session.connection, self.consumer);
                tell(self.consumer, within(PATIENCE, state).await?);
            }
            let count = self.aside.count();
            let customers = parked::due(&mut session.connection, self.consumer);
            let customers = within(PATIENCE, customers).await?;
            for &customer in &customers {
                self.round(&mut session, customer).await?;
            }
            if !customers.is_empty() {
                continue;
            }
            let exist = parked::exist(&mut session.connection, self.consumer);
            if !within(PATIENCE, exist).await? {
                self.aside.clear(count);
                tell(self.consumer, (0.0, 0.0));
                return Ok(());
            }
            let _ = timeout(POLL.min(self.consumer.first_delay), self.aside.added()).await;
        }
    }

    /// Applies what is due of a customer, up to the first that fails.
    async fn round(&self, session: &mut Session<'_, H>, customer: CustomerId) -> Result<(), Error> {
        let due = parked::read(&mut session.connection, self.consumer, customer, BATCH, BYTES);
        let due = within(PATIENCE, due).await?;
        let events: Result<Vec<_>, _> =
            due.iter().map(|parked| Received::read(&parked.payload)).collect();
        // Only what could be read was parked.
        let events = events.map_err(|error| Error::Decode(error.into()))?;
        let events: Vec<_> = events.iter().collect();
        let outcome = session.apply(&events, true).await?;
        let failed = due.get(outcome.applied).zip(outcome.fault);
        let Some((parked, fault)) = failed else { return Ok(()) };
        self.failed(session, parked, &fault).await
    }

    async fn failed(
        &self,
        session: &mut Session<'_, H>,
        parked: &Parked,
        fault: &Fault,
    ) -> Result<(), Error> {
        let (consumer, failures) = (self.consumer, parked.failures + 1);
        let is_passing = is_passing(fault);
        note(consumer, parked.event_id, failures, fault);
        let mut pause = delay(consumer, fault, failures);
        if failures >= TRIES && (!is_passing || parked.age() >= consumer.give_up_after) {
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
                    return within(PATIENCE, removed).await;
                }
                Err(error) => {
                    tracing::warn!(consumer = consumer.name, %error, "no dead letter; trying again");
                    pause = pause.max(PATIENCE);
                }
            }
        }
        let connection = &mut session.connection;
        let postponed = parked::postpone(connection, consumer, parked, is_passing, pause);
        within(PATIENCE, postponed).await
    }
}

/// Counts an attempt that has failed.
pub(super) fn note(consumer: &Consumer, event: uuid::Uuid, tries: i32, fault: &Fault) {
    let name = consumer.name;
    metrics::counter!("assay_events_failed_total", "consumer" => name).increment(1);
    tracing::warn!(consumer = name, %event, tries, error = causes(fault), "event failed");
}

/// Reports how many events are parked, and for how many seconds the oldest is.
pub(super) fn tell(consumer: &Consumer, (count, age): (f64, f64)) {
    let (consumer, stream) = (consumer.name, consumer.stream.name());
    metrics::gauge!("assay_events_parked", "consumer" => consumer, "stream" => stream.clone())
        .set(count);
    metrics::gauge!("assay_events_parked_age_seconds", "consumer" => consumer, "stream" => stream)
        .set(age);
}
