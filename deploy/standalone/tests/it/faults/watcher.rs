//! A subscriber of all notifications.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex},
    time::Duration,
};

use assay_testkit::{Api, eventually};
use async_nats::jetstream::{
    self,
    consumer::{AckPolicy, PullConsumer, pull::Config},
};
use futures::StreamExt;
use serde_json::Value;
use tokio::{
    task::JoinSet,
    time::{interval, timeout},
};

/// Interval of attempts while NATS is unavailable.
const PAUSE: Duration = Duration::from_millis(50);

/// Timeout of a request for a message.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(1);

/// A durable pull consumer of notifications, as documented for other systems: it has one message in
/// flight, acknowledges stored notifications and ignores duplicates by their id.
pub(super) struct Watcher {
    received: Arc<Mutex<Received>>,
    _task: JoinSet<()>,
}

#[derive(Default)]
struct Received {
    ids: HashSet<String>,
    /// Customers and ids of notifications in the order of delivery.
    seen: Vec<(String, String)>,
}

impl Received {
    fn add(&mut self, event: &Value) {
        let field = |name: &str| event[name].as_str().unwrap_or_default().to_owned();
        if self.ids.insert(field("id")) {
            self.seen.push((field("tenantid"), field("id")));
        }
    }
}

impl Watcher {
    pub(super) async fn start(nats_url: &str, name: &'static str) -> Self {
        let nats = async_nats::ConnectOptions::new().retry_on_initial_connect();
        let nats = nats.connect(nats_url).await.unwrap();
        let (jetstream, received) = (jetstream::new(nats), Arc::<Mutex<Received>>::default());
        let (mut task, keeper) = (JoinSet::new(), received.clone());
        task.spawn(async move {
            let mut ticks = interval(PAUSE);
            loop {
                // Every error is retried.
                let _ = watch(&jetstream, name, &keeper).await;
                ticks.tick().await;
            }
        });
        Self { received, _task: task }
    }

    /// The ids of the notifications of a customer, in the order of delivery.
    fn seen(&self, customer: &str) -> Vec<String> {
        let received = self.received.lock().unwrap();
        let own = received.seen.iter().filter(|(of, _)| of == customer);
        own.map(|(_, id)| id.clone()).collect()
    }

    /// Waits until all notifications of the caller's customer are delivered. Returns the delivered
    /// and the existing ids, oldest first.
    pub(super) async fn caught_up(&self, api: &Api) -> (Vec<String>, Vec<String>) {
        let customer = api.get("/api/management/customers/current").await.ok();
        let customer = customer["Id"].as_str().unwrap();
        let existing = notifications(api).await;
        let ids = existing.iter().rev().map(|one| one["Id"].as_str().unwrap().to_owned());
        let ids: Vec<String> = ids.collect();
        let seen = eventually("all notifications", || async {
            let seen = self.seen(customer);
            (seen.len() >= ids.len()).then_some(seen)
        })
        .await;
        (seen, ids)
    }
}

/// All notifications of the caller's customer, newest first.
pub(super) async fn notifications(api: &Api) -> Vec<Value> {
    api.get("/api/notifications").await.ok().as_array().unwrap().clone()
}

async fn watch(
    jetstream: &jetstream::Context,
    name: &str,
    received: &Mutex<Received>,
) -> Result<(), async_nats::Error> {
    let config = Config {
        durable_name: Some(name.to_owned()),
        filter_subject: "assay.notifications.>".to_owned(),
        ack_policy: AckPolicy::Explicit,
        ack_wait: Duration::from_secs(2),
        // With more, NATS redelivers unacknowledged messages after later ones.
        max_ack_pending: 1,
        ..Config::default()
    };
    let consumer: PullConsumer =
        jetstream.create_consumer_on_stream(config, "ASSAY_NOTIFICATIONS").await?;
    loop {
        let mut batch =
            consumer.batch().max_messages(1).expires(REQUEST_TIMEOUT).messages().await?;
        // A request to a server that has stopped is never answered.
        if let Some(message) = timeout(2 * REQUEST_TIMEOUT, batch.next()).await? {
            let message = message?;
            let event: Value = serde_json::from_slice(&message.payload)?;
            received.lock().unwrap().add(&event);
            message.ack().await?;
        }
    }
}
