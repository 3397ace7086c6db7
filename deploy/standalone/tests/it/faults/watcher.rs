//! Another system that hears of everything.

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

/// How often it looks again while NATS is away.
const PAUSE: Duration = Duration::from_millis(50);

/// How long it waits for what is there.
const PATIENCE: Duration = Duration::from_secs(2);

/// A durable pull consumer of notifications, as the documentation tells other systems to be one: it
/// acknowledges what it has kept, and drops what it knows by its id.
pub(super) struct Watcher {
    kept: Arc<Mutex<Kept>>,
    _task: JoinSet<()>,
}

#[derive(Default)]
struct Kept {
    known: HashSet<String>,
    /// Customers and ids, in the order in which they came.
    seen: Vec<(String, String)>,
}

impl Kept {
    fn keep(&mut self, event: &Value) {
        let field = |name: &str| event[name].as_str().unwrap_or_default().to_owned();
        if self.known.insert(field("id")) {
            self.seen.push((field("tenantid"), field("id")));
        }
    }
}

impl Watcher {
    pub(super) async fn start(nats_url: &str, name: &'static str) -> Self {
        let nats = async_nats::ConnectOptions::new().retry_on_initial_connect();
        let nats = nats.connect(nats_url).await.unwrap();
        let (jetstream, kept) = (jetstream::new(nats), Arc::<Mutex<Kept>>::default());
        let (mut task, keeper) = (JoinSet::new(), kept.clone());
        task.spawn(async move {
            let mut ticks = interval(PAUSE);
            loop {
                // Whatever goes wrong, it is tried again.
                let _ = watch(&jetstream, name, &keeper).await;
                ticks.tick().await;
            }
        });
        Self { kept, _task: task }
    }

    /// The ids that were seen of a customer, in the order of their coming.
    fn seen(&self, customer: &str) -> Vec<String> {
        let kept = self.kept.lock().unwrap();
        let own = kept.seen.iter().filter(|(of, _)| of == customer);
        own.map(|(_, id)| id.clone()).collect()
    }

    /// Waits until as many were seen of a caller's customer as there are, and says which, with
    /// those that there are, oldest first.
    pub(super) async fn caught_up(&self, api: &Api) -> (Vec<String>, Vec<String>) {
        let customer = api.get("/api/management/customers/current").await.ok();
        let customer = customer["Id"].as_str().unwrap();
        let there = notifications(api).await;
        let ids = there.iter().rev().map(|one| one["Id"].as_str().unwrap().to_owned());
        let ids: Vec<String> = ids.collect();
        let seen = eventually("the watcher to have seen all", || async {
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
    kept: &Mutex<Kept>,
) -> Result<(), async_nats::Error> {
    let config = Config {
        durable_name: Some(name.to_owned()),
        filter_subject: "assay.notifications.>".to_owned(),
        ack_policy: AckPolicy::Explicit,
        ack_wait: Duration::from_secs(2),
        ..Config::default()
    };
    let consumer: PullConsumer =
        jetstream.create_consumer_on_stream(config, "ASSAY_NOTIFICATIONS").await?;
    loop {
        let mut batch = consumer.fetch().max_messages(200).messages().await?;
        let mut count = 0;
        // What a server was asked for that is gone never comes.
        while let Some(message) = timeout(PATIENCE, batch.next()).await? {
            let message = message?;
            let event: Value = serde_json::from_slice(&message.payload)?;
            kept.lock().unwrap().keep(&event);
            message.ack().await?;
            count += 1;
        }
        if count == 0 {
            return Ok(());
        }
    }
}
