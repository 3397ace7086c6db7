//! Sends the due deliveries of webhooks.

use std::{collections::HashMap, time::Duration};

use assay_auth::Seal;
use assay_proto::{CustomerId, Fault};
use assay_runtime::{Database, Runtime, begin, trace};
use assay_work::{MOST_TAKEN, NO_END, announce};
use futures::{StreamExt as _, stream::FuturesUnordered};
use sqlx::PgPool;
use tokio::{
    task::JoinSet,
    time::{Instant, sleep, sleep_until},
};
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use super::{
    DELIVERY, backoff,
    client::{Message, WebhookClient},
    outcome::{Health, Outcome},
    rounds::{self, Attempt, Due, Round},
};
use crate::{
    egress::EgressPolicy,
    notification::publication,
    signal::NotificationSignal,
    streams::NOTIFICATIONS,
    webhook::{events, secret::Signer},
};

/// Interval of looking for due deliveries without a signal: retries, and notifications whose signal
/// was lost.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// Maximum number of concurrent rounds, in total and of one customer. The share of a customer keeps
/// slow receivers of some customers from delaying the others.
const MAX_ROUNDS: usize = 128;
const MAX_ROUNDS_OF_CUSTOMER: usize = 16;

/// Interval of looking for due deliveries while there are signals without a pause.
const LOOK_INTERVAL: Duration = Duration::from_millis(10);

/// Duration after which a round sends nothing more, so that other webhooks get their turn.
const MAX_ROUND_DURATION: Duration = Duration::from_secs(5);

/// Number of messages that are sent to a webhook concurrently.
const CONCURRENT: usize = 16;

/// Number of running rounds of each customer.
#[derive(Default)]
struct Running(HashMap<CustomerId, i64>);

impl Running {
    fn begin(&mut self, customer: CustomerId) {
        *self.0.entry(customer).or_default() += 1;
    }

    fn end(&mut self, customer: CustomerId) {
        if let Some(count) = self.0.get_mut(&customer) {
            *count -= 1;
        }
        self.0.retain(|_, count| *count > 0);
    }
}

/// Sends due deliveries in rounds.
#[derive(Clone)]
pub(crate) struct Sender {
    db: PgPool,
    seal: Seal,
    client: WebhookClient,
}

impl Sender {
    pub(crate) fn new(db: &PgPool, seal: &Seal, policy: &EgressPolicy) -> anyhow::Result<Self> {
        Ok(Self { db: db.clone(), seal: seal.clone(), client: WebhookClient::new(policy)? })
    }

    /// Starts sending as soon as the database is migrated. When the program stops, the running rounds
    /// are finished.
    pub(crate) fn spawn(self, runtime: &Runtime, database: &Database, signal: NotificationSignal) {
        metrics::describe_counter!(
            "assay_webhook_attempts_total",
            metrics::Unit::Count,
            "Attempts to deliver a notification to a webhook."
        );
        let (database, stopping) = (database.clone(), runtime.stopping());
        runtime.spawn("webhooks", async move {
            if stopping.run_until_cancelled(database.ready()).await.is_none() {
                return Ok(());
            }
            let (mut rounds, mut running) = (JoinSet::new(), Running::default());
            while !stopping.is_cancelled() {
                let looked = Instant::now();
                for round in self.claim(MAX_ROUNDS - rounds.len(), &running).await {
                    running.begin(round.customer);
                    rounds.spawn(self.clone().run(round, stopping.clone()));
                }
                tokio::select! {
                    Some(ended) = rounds.join_next() => running.end(ended?),
                    () = signal.any() => {}
                    () = sleep(POLL_INTERVAL) => {}
                    () = stopping.cancelled() => {}
                }
                sleep_until(looked + LOOK_INTERVAL).await;
                // Rounds that end together are followed by one query for more.
                while let Some(ended) = rounds.try_join_next() {
                    running.end(ended?);
                }
            }
            while let Some(ended) = rounds.join_next().await {
                ended?;
            }
            Ok(())
        });
    }

    /// Claims up to `limit` webhooks that have due deliveries.
    async fn claim(&self, limit: usize, running: &Running) -> Vec<Round> {
        match rounds::claim(&self.db, limit, MAX_ROUNDS_OF_CUSTOMER, &running.0).await {
            Ok(rounds) => rounds,
            Err(Fault::Unavailable(_)) => {
                tracing::debug!("cannot read due deliveries: the database is unavailable");
                Vec::new()
            }
            Err(fault) => {
                tracing::error!(error = %fault, "cannot read due deliveries");
                Vec::new()
            }
        }
    }

    /// Sends due deliveries of a webhook, batch by batch, while it is healthy, and records the
    /// attempts. If recording fails, the deliveries are sent again after the claim has expired.
    /// Returns the customer of the round.
    async fn run(self, mut round: Round, stopping: CancellationToken) -> CustomerId {
        if let Err(fault) = self.try_run(&mut round, &stopping).await {
            tracing::warn!(webhook.id = %round.webhook, error = %fault, "cannot finish a round");
            if let Err(fault) = rounds::end(&self.db, round.webhook).await {
                tracing::debug!(webhook.id = %round.webhook, error = %fault, "cannot end a round");
            }
        }
        round.customer
    }

    async fn try_run(&self, round: &mut Round, stopping: &CancellationToken) -> Result<(), Fault> {
        let ends = Instant::now() + MAX_ROUND_DURATION;
        let secrets = round.secrets.iter().map(String::as_str);
        let signer = Signer::open(&self.seal, round.webhook, secrets)?;
        let mut health = Health::Failing;
        if round.taken > MOST_TAKEN
            && let Some(first) = round.due.first()
        {
            let outcome = Outcome::failed(NO_END.to_owned());
            let notification = first.notification.id.clone();
            announce(DELIVERY.kind, &format!("{}.{notification}", round.webhook), NO_END);
            let given_up = Attempt { notification, outcome, delay: None };
            return self.finish(round, &[given_up], health).await;
        }
        loop {
            let attempts = self.send(round, &signer, ends).await?;
            health = attempts.iter().fold(health, |health, one| health.after(&one.outcome));
            let has_time = Instant::now() < ends && !stopping.is_cancelled();
            if attempts.len() < rounds::BATCH || !has_time {
                return self.finish(round, &attempts, health).await;
            }
            rounds::record_attempts(&self.db, round.webhook, &attempts).await?;
            rounds::read_more(&self.db, round).await?;
        }
    }

    /// Sends deliveries of a round, until it ends or as many as are sent concurrently have failed in
    /// a row.
    async fn send(
        &self,
        round: &Round,
        signer: &Signer,
        ends: Instant,
    ) -> Result<Vec<Attempt>, Fault> {
        let (mut waiting, mut sending) = (round.due.iter(), FuturesUnordered::new());
        for due in waiting.by_ref().take(CONCURRENT) {
            sending.push(self.attempt(round, signer, due));
        }
        let (mut attempts, mut failures) = (Vec::with_capacity(round.due.len()), CONCURRENT);
        while let Some(attempt) = sending.next().await {
            let attempt = attempt?;
            failures = if attempt.outcome.is_success() { 0 } else { failures + 1 };
            attempts.push(attempt);
            if failures < CONCURRENT
                && Instant::now() < ends
                && let Some(due) = waiting.next()
            {
                sending.push(self.attempt(round, signer, due));
            }
        }
        Ok(attempts)
    }

    async fn attempt(&self, round: &Round, signer: &Signer, due: &Due) -> Result<Attempt, Fault> {
        let event = publication::event(round.customer, &due.notification)?;
        let body = event.to_json(NOTIFICATIONS, due.created_at)?;
        let id = &due.notification.id;
        let signature = signer.sign(id, round.timestamp, &body);
        let message = Message { id, timestamp: round.timestamp, signature: &signature, body };
        let span = tracing::info_span!(
            parent: None,
            "deliver",
            otel.kind = "client",
            http.request.method = "POST",
            webhook = %round.webhook,
        );
        trace::follow_map(&span, &due.trace);
        let outcome = self.client.send(&round.url, message).instrument(span).await;
        let result = if outcome.is_success() { "delivered" } else { "failed" };
        metrics::counter!("assay_webhook_attempts_total", "result" => result).increment(1);
        let delay = backoff::after(due.attempts + 1).map(|delay| delay.max(outcome.retry_after));
        Ok(Attempt { notification: id.clone(), delay, outcome })
    }

    /// Records the last attempts and releases the webhook, in one transaction.
    async fn finish(
        &self,
        round: &Round,
        attempts: &[Attempt],
        health: Health,
    ) -> Result<(), Fault> {
        let mut tx = begin(&self.db).await?;
        rounds::record_attempts(&mut *tx, round.webhook, attempts).await?;
        let is_archived = rounds::release(&mut tx, round.webhook, health).await?;
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
