//! The way of an event: outboxes, streams and consumers.

use std::time::Duration;

use assay_database::connect_options;
use assay_events::unpublished;
use async_nats::jetstream;
use sqlx::PgPool;
use tokio::time::{interval, timeout};

use crate::world::World;

/// Maximum time until all events have taken effect.
const SETTLES_WITHIN: Duration = Duration::from_secs(30);

const POLL: Duration = Duration::from_millis(20);

/// The consumers of each stream.
const CONSUMERS: [(&str, &[&str]); 3] = [
    ("ASSAY_IDENTITY", &["notification"]),
    ("ASSAY_CATALOG", &["notification", "execution", "identity"]),
    ("ASSAY_EXECUTION", &["notification", "catalog", "identity"]),
];

/// The databases of the services, and NATS.
pub(super) struct Pipeline {
    pub(super) identity: PgPool,
    pub(super) catalog: PgPool,
    pub(super) execution: PgPool,
    pub(super) notification: PgPool,
    pub(super) jetstream: jetstream::Context,
}

impl Pipeline {
    pub(super) async fn of(world: &World, nats_url: &str) -> Self {
        let pool = |url| PgPool::connect_lazy_with(connect_options(url).unwrap());
        let [identity, catalog, execution, notification] = world.databases().map(pool);
        let nats = async_nats::connect(nats_url).await.unwrap();
        let jetstream = jetstream::new(nats);
        Self { identity, catalog, execution, notification, jetstream }
    }

    /// All databases, starting with those whose events other services consume.
    pub(super) fn databases(&self) -> [&PgPool; 4] {
        [&self.identity, &self.catalog, &self.execution, &self.notification]
    }

    /// Number of unpublished events in each outbox.
    pub(super) async fn backlogs(&self) -> [i64; 4] {
        let mut backlogs = [0; 4];
        for (backlog, db) in backlogs.iter_mut().zip(self.databases()) {
            *backlog = unpublished(db).await.unwrap();
        }
        backlogs
    }

    /// Age of the oldest unpublished event in seconds.
    pub(super) async fn oldest_age(&self) -> f64 {
        let mut longest = 0.0;
        for db in self.databases() {
            let wait = sqlx::query_scalar(
                "select coalesce(extract(epoch from now() - min(created_at)), 0)::float8
                 from outbox where published_at is null",
            );
            longest = wait.fetch_one(db).await.map(|wait: f64| wait.max(longest)).unwrap();
        }
        longest
    }

    /// Waits until all events have taken effect. Call it after the last write.
    pub(super) async fn settle(&self) {
        let mut pending = None;
        let settled = timeout(SETTLES_WITHIN, async {
            let mut ticks = interval(POLL);
            loop {
                ticks.tick().await;
                pending = self.pending().await;
                if pending.is_none() {
                    return;
                }
            }
        });
        if settled.await.is_err() {
            let failures = self.failures().await;
            panic!("still pending after {SETTLES_WITHIN:?}: {pending:?}; failures: {failures:?}");
        }
    }

    /// Consumer, event and number of attempts of all failed events.
    async fn failures(&self) -> Vec<(String, String, i32)> {
        let mut failures = Vec::new();
        for db in self.databases() {
            let failed = "select consumer, event_id::text, failures from inbox_parked
                          where given_up_at is null";
            let failed = sqlx::query_as(failed).fetch_all(db).await.unwrap();
            failures.extend::<Vec<(String, String, i32)>>(failed);
        }
        failures
    }

    /// A description of something that has not taken effect yet.
    async fn pending(&self) -> Option<String> {
        let [identity, catalog, execution, _] = self.backlogs().await;
        if identity + catalog + execution > 0 {
            return Some("an event in an outbox".to_owned());
        }
        for (name, consumers) in CONSUMERS {
            let Ok(stream) = self.jetstream.get_stream(name).await else {
                return Some(format!("no {name}"));
            };
            for consumer in consumers {
                let Ok(info) = stream.consumer_info(consumer).await else {
                    return Some(format!("no consumer {consumer} of {name}"));
                };
                if info.num_ack_pending > 0 || info.num_pending > 0 {
                    let (unacknowledged, pending) = (info.num_ack_pending, info.num_pending);
                    return Some(format!(
                        "messages for {consumer} of {name}: {unacknowledged} unacknowledged, {pending} pending, {} requests",
                        info.num_waiting
                    ));
                }
            }
        }
        for db in self.databases() {
            let parked =
                sqlx::query_scalar("select count(*) from inbox_parked where given_up_at is null");
            let parked: i64 = parked.fetch_one(db).await.unwrap();
            if parked > 0 {
                return Some(format!("{parked} parked events"));
            }
        }
        // Checked last, because the other consumers add notifications.
        let backlog = unpublished(&self.notification).await.unwrap();
        (backlog > 0).then(|| "a notification in the outbox".to_owned())
    }

    /// Publishes a message without the outbox and without an id, so that JetStream detects no
    /// duplicate.
    pub(super) async fn send(&self, subject: &str, payload: Vec<u8>) {
        let sent = self.jetstream.publish(subject.to_owned(), payload.into());
        sent.await.unwrap().await.unwrap();
    }
}
