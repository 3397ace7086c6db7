//! Consumers, which apply the events of another service once each.
//!
//! JetStream delivers at least once, and in order as long as nobody waits. A consumer makes "once, and
//! nobody waits" of it. The id of an event enters the `inbox` in the transaction that applies the event, so
//! a second delivery finds it there and does nothing. An event that cannot be applied within a second is
//! parked as a row, and counts as settled, so one blocked record delays no other customer. The message is
//! acknowledged after the commit: a program that ends before it is delivered the event again, one that ends
//! after it is not. `docs/design/events.md` describes the whole way, and what holds at each crash point.

mod apply;
mod attempt;
mod definition;
mod delivery;
mod inbox;
mod parked;
mod received;
mod retry;
mod session;
mod subscription;

use std::time::Duration;

use assay_database::Database;
use assay_runtime::Runtime;
use sqlx::{Error, PgPool};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use self::{
    attempt::Limits,
    retry::{ParkedSignal, Retrier},
    session::Session,
    subscription::Subscription,
};
pub use self::{
    definition::{Consumer, Handler},
    received::Received,
};
use crate::{Nats, connection::RETRY_INTERVAL, telemetry};

/// Limits of the first attempt, for which later events wait. An event that exceeds them is parked.
const LIMITS: Limits =
    Limits { event: Duration::from_millis(900), statement: "800ms", lock: "400ms" };

impl Consumer {
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

    /// Consumes until `stop` is cancelled, then finishes the current transaction.
    pub async fn run(
        self,
        pool: PgPool,
        nats: Nats,
        handler: impl Handler,
        stop: CancellationToken,
    ) {
        let (mut down, mut is_interrupted) = (false, false);
        telemetry::describe();
        retry::record_parked(&self, (0.0, 0.0));
        while !stop.is_cancelled() {
            let state = (&mut down, is_interrupted);
            let ended = self.session(&pool, &nats, &handler, &stop, state).await;
            is_interrupted = true;
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
        (down, is_interrupted): (&mut bool, bool),
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
        let retrier =
            Retrier { consumer: self, pool, handler, parked: parked.clone(), is_interrupted };
        let mut subscription = Subscription::new(nats, self);
        let ended = tokio::select! {
            ended = self.consume(&mut session, &mut subscription, &parked, stop) => ended,
            () = retrier.run() => Ok(()),
        };
        subscription.reject_all(&[]).await;
        ended
    }

    async fn consume(
        &self,
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
                done = self.apply(session, parked, &deliveries, stop) => done,
                () = subscription.keep_alive(&deliveries) => Ok(()),
            };
            if done.is_err() || stop.is_cancelled() {
                subscription.reject_all(&deliveries).await;
            }
            done?;
        }
        Ok(())
    }
}
