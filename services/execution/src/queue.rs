//! Notifies waiting engines of new work.
//!
//! A program that queues schedules publishes the target group on a NATS subject that no stream
//! stores.

use std::time::Duration;

use assay_fair::{Notifier, OfCustomer};
use assay_proto::{CustomerId, Fault};
use assay_runtime::{Runtime, nats::subscribe};
use async_nats::{Client, connection::State};
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, timeout};

/// The NATS subject on which programs publish that schedules were queued.
const QUEUED: &str = "assay.queued";

/// Time limit for a notification. Engines also poll for work without one.
const TIMEOUT: Duration = Duration::from_millis(500);

/// The queue of a target group.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct GroupQueue {
    customer: CustomerId,
    target_group: String,
}

impl OfCustomer for GroupQueue {
    fn customer(&self) -> CustomerId {
        self.customer
    }
}

/// The engines that wait for work.
#[derive(Clone)]
pub struct Queue {
    waiting: Notifier<GroupQueue>,
    nats: Option<Client>,
}

impl Queue {
    /// Returns a queue that notifies only the engines that wait at this process.
    pub fn local(runtime: &Runtime) -> Self {
        Self { waiting: Notifier::new(runtime), nats: None }
    }

    /// Returns a queue that notifies the engines that wait at any process.
    pub fn connect(runtime: &Runtime, nats: Client) -> Self {
        let waiting = Notifier::new(runtime);
        let here = waiting.clone();
        subscribe(runtime, nats.clone(), QUEUED.to_owned(), move |message| {
            match serde_json::from_slice(&message.payload) {
                Ok(queue) => here.wake(&queue),
                Err(error) => tracing::warn!(%error, "cannot parse the notification of a queue"),
            }
        });
        Self { waiting, nats: Some(nats) }
    }

    /// Returns the number of engines that wait at this process.
    pub fn waiting(&self) -> usize {
        self.waiting.sleeping()
    }

    /// Notifies the engines of a target group that there is work. Must follow the commit.
    pub(crate) async fn notify(&self, customer: CustomerId, target_group: &str) {
        let queue = GroupQueue { customer, target_group: target_group.to_owned() };
        self.waiting.wake(&queue);
        let Some(nats) = &self.nats else { return };
        if nats.connection_state() != State::Connected {
            return;
        }
        let Ok(message) = serde_json::to_vec(&queue) else { return };
        let published = timeout(TIMEOUT, nats.publish(QUEUED, message.into())).await;
        if !matches!(published, Ok(Ok(()))) {
            tracing::debug!("cannot notify engines of work; they find it at their next poll");
        }
    }

    /// Polls for work, and again after each notification, until there is some, `wait` is over or
    /// the program stops.
    pub(crate) async fn wait<T, F: Future<Output = Result<Option<T>, Fault>>>(
        &self,
        customer: CustomerId,
        target_group: &str,
        wait: Duration,
        mut poll: impl FnMut() -> F,
    ) -> Result<Option<T>, Fault> {
        if wait.is_zero() {
            return poll().await;
        }
        let queue = GroupQueue { customer, target_group: target_group.to_owned() };
        self.waiting.register(queue)?.poll(Some(Instant::now() + wait), poll).await
    }
}
