//! Sends the due deliveries of webhooks.

use std::{sync::Arc, time::Duration};

use assay_auth::Seal;
use assay_database::{Database, begin};
use assay_fair::Shares;
use assay_proto::{CustomerId, Fault, NotificationId};
use assay_runtime::{Runtime, trace};
use assay_work::{InTurns, MOST_TAKEN, NO_END, Turns, announce};
use futures::{StreamExt as _, stream::FuturesUnordered};
use sqlx::PgPool;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;
use uuid::Uuid;

use crate::{
    client::{RESPONSE_TIMEOUT, WebhookClient},
    delivery::{
        DELIVERY,
        attempt::{Attempt, Tried},
        backoff,
        due::{self, Due, Grouping},
        outcome::{Health, Outcome},
        results,
        rounds::{self, Round},
    },
    format,
    message::{Message, Messages},
    signal::NotificationSignal,
    webhook::events,
};

/// Maximum number of concurrent rounds, in total and of one customer. The share of a customer keeps
/// slow receivers of some customers from delaying the others.
const MAX_ROUNDS: i64 = 128;
const MAX_ROUNDS_OF_CUSTOMER: i64 = 16;

/// Duration after which a round sends nothing more, so that other webhooks get their turn.
const MAX_ROUND_DURATION: Duration = Duration::from_secs(5);

/// Validity of the claim of a webhook: longer than a round takes, whose last attempts begin within
/// [`MAX_ROUND_DURATION`], and are then recorded. A program that is frozen or dies delays the deliveries to
/// its webhooks for this time.
const CLAIM: Duration = Duration::from_secs(30);
const _: () = assert!(
    MAX_ROUND_DURATION.as_secs() + RESPONSE_TIMEOUT.as_secs() + 5 < CLAIM.as_secs(),
    "the claim must outlast the round"
);

/// Number of messages that are sent to a webhook concurrently.
const CONCURRENT: usize = 16;

/// Maximum number of concurrent requests with several deliveries. Each has up to 4 MiB.
const MAX_GROUPS: usize = 8;

/// Sends due deliveries in rounds.
pub(crate) struct Sender {
    db: PgPool,
    seal: Seal,
    client: WebhookClient,
    signal: NotificationSignal,
    /// The requests with several deliveries that are sent at once.
    groups: Shares,
}

impl InTurns for Sender {
    const TASK: &'static str = "webhooks";
    const POLL: Duration = Duration::from_secs(1);
    const PAUSE: Duration = Duration::from_millis(10);
    const STOP_GRACE: Duration = CLAIM;

    type Claimed = Round;
    type Turn = CustomerId;

    fn turn(round: &Round) -> CustomerId {
        round.customer
    }

    async fn claim(&self, running: &Turns<CustomerId>) -> Result<Vec<Round>, Fault> {
        let limit = MAX_ROUNDS - running.count(|_| true);
        rounds::claim(&self.db, limit, MAX_ROUNDS_OF_CUSTOMER, running, CLAIM).await
    }

    async fn signal(&self) {
        self.signal.any().await;
    }

    /// Sends due deliveries of a webhook, batch by batch, while it is healthy, and records the
    /// attempts. If recording fails, the deliveries are sent again after the claim has expired.
    async fn run(self: Arc<Self>, mut round: Round, stopping: CancellationToken) {
        if let Err(fault) = self.try_run(&mut round, &stopping).await {
            tracing::warn!(webhook.id = %round.webhook, error = %fault, "cannot finish a round");
            if let Err(fault) = results::end(&self.db, &round).await {
                tracing::debug!(webhook.id = %round.webhook, error = %fault, "cannot end a round");
            }
        }
    }
}

impl Sender {
    pub(crate) fn new(
        db: &PgPool,
        seal: &Seal,
        client: &WebhookClient,
        signal: NotificationSignal,
    ) -> Self {
        let (db, seal, client) = (db.clone(), seal.clone(), client.clone());
        Self { db, seal, client, signal, groups: Shares::new(MAX_GROUPS) }
    }

    /// Starts sending as soon as the database is migrated. When the program stops, the running rounds
    /// are finished.
    pub(crate) fn start(self, runtime: &Runtime, database: &Database) {
        metrics::describe_counter!(
            "assay_webhook_attempts_total",
            metrics::Unit::Count,
            "Attempts to deliver a notification to a webhook."
        );
        self.spawn(runtime, database);
    }

    async fn try_run(&self, round: &mut Round, stopping: &CancellationToken) -> Result<(), Fault> {
        let ends = Instant::now() + MAX_ROUND_DURATION;
        let has_time = || Instant::now() < ends && !stopping.is_cancelled();
        let messages = Messages::open(&self.seal, round.webhook, &round.sealed)?;
        let mut health = Health::Failing;
        if round.taken > MOST_TAKEN
            && let Some(first) = round.due.first()
        {
            let outcome = Outcome::failed(NO_END.to_owned());
            let notification = NotificationId::from_path(&first.notification.id)?;
            announce(DELIVERY.kind, &format!("{}.{notification}", round.webhook), NO_END);
            let deliveries = vec![Tried { notification, delay: None }];
            let given_up = Attempt { deliveries, outcome };
            return self.finish(round, &[given_up], health).await;
        }
        if let Some(grouping) = round.grouping {
            return self.run_grouped(round, &messages, grouping, has_time).await;
        }
        loop {
            let attempts = self.send(round, &messages, has_time).await?;
            health = attempts.iter().fold(health, |health, one| health.after(&one.outcome));
            if attempts.len() < due::BATCH || !has_time() {
                return self.finish(round, &attempts, health).await;
            }
            if !self.record(round, &attempts).await? {
                return Ok(());
            }
            rounds::read_more(&self.db, round).await?;
        }
    }

    /// Sends deliveries of a round, until its time is over or as many as are sent concurrently have failed in
    /// a row.
    async fn send(
        &self,
        round: &Round,
        messages: &Messages,
        has_time: impl Fn() -> bool,
    ) -> Result<Vec<Attempt>, Fault> {
        let (mut waiting, mut sending) = (round.due.iter(), FuturesUnordered::new());
        for due in waiting.by_ref().take(CONCURRENT) {
            sending.push(self.attempt(round, messages, due));
        }
        let (mut attempts, mut failures) = (Vec::with_capacity(round.due.len()), CONCURRENT);
        while let Some(attempt) = sending.next().await {
            let attempt = attempt?;
            failures = if attempt.outcome.is_success() { 0 } else { failures + 1 };
            attempts.push(attempt);
            if failures < CONCURRENT
                && has_time()
                && let Some(due) = waiting.next()
            {
                sending.push(self.attempt(round, messages, due));
            }
        }
        Ok(attempts)
    }

    async fn attempt(
        &self,
        round: &Round,
        messages: &Messages,
        due: &Due,
    ) -> Result<Attempt, Fault> {
        let notification = (&due.notification, due.created_at);
        let body = format::single(round.format, round.customer, notification)?;
        let id = &due.notification.id;
        let message = messages.message(id, round.timestamp, body)?;
        self.send_message(round, message, std::slice::from_ref(due)).await
    }

    /// Sends a message with deliveries.
    async fn send_message(
        &self,
        round: &Round,
        message: Message,
        deliveries: &[Due],
    ) -> Result<Attempt, Fault> {
        let span = tracing::info_span!(
            parent: None,
            "deliver",
            otel.kind = "client",
            http.request.method = "POST",
            webhook = %round.webhook,
        );
        if let Some(first) = deliveries.first() {
            trace::follow_map(&span, &first.trace);
        }
        let sent = self.client.send(round.customer, &round.url, message, RESPONSE_TIMEOUT);
        let outcome = sent.instrument(span).await;
        let result = if outcome.is_success() { "delivered" } else { "failed" };
        metrics::counter!("assay_webhook_attempts_total", "result" => result).increment(1);
        let tried = deliveries.iter().map(|due| {
            let delay = backoff::after(due.attempts + 1);
            let delay = delay.map(|delay| delay.max(outcome.retry_after));
            Ok(Tried { notification: NotificationId::from_path(&due.notification.id)?, delay })
        });
        Ok(Attempt { deliveries: tried.collect::<Result<_, Fault>>()?, outcome })
    }

    /// Sends deliveries together, request by request, while they succeed and there are enough for another
    /// one. Recording is as for single deliveries.
    async fn run_grouped(
        &self,
        round: &mut Round,
        messages: &Messages,
        grouping: Grouping,
        has_time: impl Fn() -> bool,
    ) -> Result<(), Fault> {
        let mut health = Health::Failing;
        loop {
            // The place bounds the memory of all requests. The claim outlasts the wait for it.
            let place = self.groups.acquire_within(round.customer, MAX_ROUND_DURATION).await;
            let Ok(_place) = place else { return self.end_early(round, health).await };
            let is_more = rounds::read_group(&self.db, round, grouping).await?;
            if round.due.is_empty() {
                // The last request had all that was due, or the webhook has changed since.
                return self.end_early(round, health).await;
            }
            let dated: Vec<_> =
                round.due.iter().map(|due| (&due.notification, due.created_at)).collect();
            let body = format::several(round.format, round.customer, &dated)?;
            let count = body.count;
            // The notifications have ids of their own. The same request is never sent twice.
            let id = Uuid::now_v7().to_string();
            let message = messages.message(&id, round.timestamp, body)?;
            let attempt = self.send_message(round, message, &round.due[..count]).await?;
            health = health.after(&attempt.outcome);
            let goes_on = attempt.outcome.is_success() && (is_more || count < round.due.len());
            if !goes_on || !has_time() {
                return self.finish(round, &[attempt], health).await;
            }
            if !self.record(round, &[attempt]).await? {
                return Ok(());
            }
        }
    }

    /// Ends a round that sends nothing more, and has recorded its attempts.
    async fn end_early(&self, round: &Round, health: Health) -> Result<(), Fault> {
        match health {
            Health::Healthy => self.finish(round, &[], health).await,
            // Nothing was sent.
            Health::Failing | Health::Gone => results::give_back(&self.db, round).await,
        }
    }

    /// Records attempts. Returns whether the webhook is still claimed by the round.
    async fn record(&self, round: &Round, attempts: &[Attempt]) -> Result<bool, Fault> {
        let mut tx = begin(&self.db).await?;
        let Some(is_unchanged) = results::lock(&mut tx, round).await? else {
            late(round);
            return Ok(false);
        };
        results::record_attempts(&mut tx, round, attempts, is_unchanged).await?;
        tx.commit().await?;
        Ok(true)
    }

    /// Records the last attempts and releases the webhook, in one transaction. If the webhook has changed since the
    /// round began, failures say nothing about its receiver, which may be another one.
    async fn finish(
        &self,
        round: &Round,
        attempts: &[Attempt],
        health: Health,
    ) -> Result<(), Fault> {
        let mut tx = begin(&self.db).await?;
        let Some(is_unchanged) = results::lock(&mut tx, round).await? else {
            late(round);
            return Ok(());
        };
        results::record_attempts(&mut tx, round, attempts, is_unchanged).await?;
        if !is_unchanged && health != Health::Healthy {
            results::give_back(&mut *tx, round).await?;
            tx.commit().await?;
            return Ok(());
        }
        let is_archived = results::release(&mut tx, round.webhook, health).await?;
        if is_archived {
            events::publish(&mut tx, round.customer, round.webhook, "Disabled").await?;
        }
        tx.commit().await?;
        if is_archived {
            tracing::info!(webhook.id = %round.webhook, ?health, "archived a webhook");
        }
        Ok(())
    }
}

/// Logs that nothing is recorded about a round, which another one has followed meanwhile.
fn late(round: &Round) {
    tracing::warn!(webhook.id = %round.webhook,
        "a round took longer than its claim; its deliveries are sent again");
}
