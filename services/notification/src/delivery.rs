//! Deliveries: notifications that webhooks are sent, again and again until they are taken.
//!
//! A delivery is written in the transaction of its notification, so that none is forgotten. It is
//! sent in rounds: a round sends some of what one webhook is due, as long as some of it is taken, and
//! no two rounds of a webhook run at a time, on whichever replica. So a receiver that is slow holds up nobody but
//! itself, and one that is down is not asked too often.

mod post;
mod reach;
mod rules;
pub(crate) mod store;

use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

use assay_auth::Seal;
use assay_proto::{CustomerId, Fault};
use assay_runtime::{Database, Runtime, begin, trace};
use futures::future::join_all;
use sqlx::PgPool;
use tokio::{task::JoinSet, time::sleep};
use tracing::Instrument;

pub(crate) use self::reach::Reach;
use self::{
    post::{Message, Post},
    rules::Health,
    store::{Attempt, Due, Round},
};
use crate::{
    News, PUBLISHED, notification,
    webhook::{self, Signer},
};

/// How often it is looked for what is to be tried again, and for what nobody has told of.
const POLL: Duration = Duration::from_secs(1);

/// How many rounds run at once, and how many of them for one customer: slow receivers of some
/// customers leave rounds to others.
const ROUNDS: usize = 128;
const ROUNDS_OF_CUSTOMER: usize = 16;

/// After how long a round ends that could go on: others wait for theirs.
const ROUND: Duration = Duration::from_secs(5);

/// How much is sent to a webhook at once.
const AT_ONCE: usize = 16;

/// How many rounds run for each customer.
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

/// Sends what webhooks are due.
#[derive(Clone)]
pub(crate) struct Sender {
    db: PgPool,
    seal: Seal,
    post: Post,
}

impl Sender {
    pub(crate) fn new(db: &PgPool, seal: &Seal, reach: &Reach) -> anyhow::Result<Self> {
        Ok(Self { db: db.clone(), seal: seal.clone(), post: Post::new(reach)? })
    }

    /// Sends from when the database is migrated until the program stops; then finishes the rounds
    /// that have begun.
    pub(crate) fn spawn(self, runtime: &Runtime, database: &Database, news: News) {
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
                for round in self.begin(ROUNDS - rounds.len(), &running).await {
                    running.begin(round.customer);
                    rounds.spawn(self.clone().carry_out(round));
                }
                tokio::select! {
                    Some(ended) = rounds.join_next() => running.end(ended?),
                    () = news.of_anybody() => {}
                    () = sleep(POLL) => {}
                    () = stopping.cancelled() => {}
                }
                // Those that end together are followed by one look for more.
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

    /// Begins so many rounds at most: of webhooks that are due something and have none running.
    async fn begin(&self, most: usize, running: &Running) -> Vec<Round> {
        match store::begin(&self.db, most, ROUNDS_OF_CUSTOMER, &running.0).await {
            Ok(rounds) => rounds,
            Err(Fault::Unavailable(_)) => {
                tracing::debug!("the deliveries cannot be read");
                Vec::new()
            }
            Err(fault) => {
                tracing::error!(error = %fault, "deliveries cannot be made");
                Vec::new()
            }
        }
    }

    /// Sends what is due, and takes note of what came of it. If that fails, it is sent once more.
    /// Returns whose round it was.
    async fn carry_out(self, round: Round) -> CustomerId {
        let begun = Instant::now();
        let done = async {
            let secrets = round.secrets.iter().map(String::as_str);
            let signer = Signer::open(&self.seal, round.webhook, secrets)?;
            let mut attempts = Vec::with_capacity(round.due.len());
            for due in round.due.chunks(AT_ONCE) {
                let made = due.iter().map(|due| self.attempt(&round, &signer, due));
                let made = join_all(made).await.into_iter().collect::<Result<Vec<_>, _>>()?;
                let is_well = made.iter().any(|attempt| attempt.outcome.problem.is_none());
                attempts.extend(made);
                if !is_well || begun.elapsed() > ROUND {
                    break;
                }
            }
            self.note(&round, &attempts).await
        };
        if let Err(fault) = done.await {
            tracing::warn!(webhook = %round.webhook, error = %fault, "a round has failed");
        }
        round.customer
    }

    async fn attempt(&self, round: &Round, signer: &Signer, due: &Due) -> Result<Attempt, Fault> {
        let event = notification::store::event(round.customer, &due.notification)?;
        let body = event.to_json(PUBLISHED, due.created_at)?;
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
        let outcome = self.post.send(&round.url, message).instrument(span).await;
        let result = if outcome.problem.is_none() { "delivered" } else { "failed" };
        metrics::counter!("assay_webhook_attempts_total", "result" => result).increment(1);
        let pause = rules::pause(due.attempts + 1).map(|pause| pause.max(outcome.retry_after));
        Ok(Attempt { notification: id.clone(), pause, outcome })
    }

    /// Takes note of a round, in one transaction with what follows from it for the webhook.
    async fn note(&self, round: &Round, attempts: &[Attempt]) -> Result<(), Fault> {
        let mut tx = begin(&self.db).await?;
        store::note(&mut tx, round.webhook, attempts).await?;
        let health = Health::of(attempts.iter().map(|attempt| &attempt.outcome));
        if store::note_health(&mut tx, round.webhook, health).await? {
            let disabled = webhook::notification(round.customer, round.webhook, "Disabled");
            notification::store::insert(&mut tx, round.customer, disabled).await?;
            tracing::info!(webhook = %round.webhook, "a webhook is sent nothing any more");
        }
        tx.commit().await?;
        Ok(())
    }
}
