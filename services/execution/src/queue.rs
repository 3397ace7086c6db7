//! How engines that wait for work learn that there is some.
//!
//! Whoever queues something says so on NATS, outside of the subjects that are kept as events.

use std::time::Duration;

use assay_proto::{CustomerId, Fault};
use assay_runtime::{OfCustomer, Runtime, Notifier, nats::hear};
use async_nats::{Client, connection::State};
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, timeout};

/// Where it is told that something was queued.
const QUEUED: &str = "assay.queued";

/// How long telling may take; it is not worth waiting for.
const PATIENCE: Duration = Duration::from_millis(500);

/// Which queue: that of a target group.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Line {
    customer: CustomerId,
    target_group: String,
}

impl OfCustomer for Line {
    fn customer(&self) -> CustomerId {
        self.customer
    }
}

/// Who waits at which queue.
#[derive(Clone)]
pub struct Queue {
    waiting: Notifier<Line>,
    nats: Option<Client>,
}

impl Queue {
    /// Tells those who wait in this process only; others find out by themselves, later.
    pub fn local(runtime: &Runtime) -> Self {
        Self { waiting: Notifier::new(runtime), nats: None }
    }

    /// Tells those who wait in any process.
    pub fn connect(runtime: &Runtime, nats: Client) -> Self {
        let waiting = Notifier::new(runtime);
        let here = waiting.clone();
        hear(
            runtime,
            nats.clone(),
            QUEUED.to_owned(),
            move |message| match serde_json::from_slice(&message.payload) {
                Ok(line) => here.wake(&line),
                Err(error) => tracing::warn!(%error, "not a queue"),
            },
        );
        Self { waiting, nats: Some(nats) }
    }

    /// How many engines have found nothing and wait at this server.
    pub fn waiting(&self) -> usize {
        self.waiting.asleep()
    }

    /// Tells engines of a group that there is work, right after the commit.
    pub(crate) async fn notify(&self, customer: CustomerId, target_group: &str) {
        let line = Line { customer, target_group: target_group.to_owned() };
        self.waiting.wake(&line);
        let Some(nats) = &self.nats else { return };
        if nats.connection_state() != State::Connected {
            return;
        }
        let Ok(message) = serde_json::to_vec(&line) else { return };
        let told = timeout(PATIENCE, nats.publish(QUEUED, message.into())).await;
        if !matches!(told, Ok(Ok(()))) {
            tracing::debug!("engines were not told of work; they will look by themselves");
        }
    }

    /// Looks for work, and again whenever there may be some, until something is found, the time is
    /// over or the program stops.
    pub(crate) async fn wait<T, F: Future<Output = Result<Option<T>, Fault>>>(
        &self,
        customer: CustomerId,
        target_group: &str,
        patience: Duration,
        mut look: impl FnMut() -> F,
    ) -> Result<Option<T>, Fault> {
        if patience.is_zero() {
            return look().await;
        }
        let line = Line { customer, target_group: target_group.to_owned() };
        self.waiting.wait_for(line)?.look(Some(Instant::now() + patience), look).await
    }
}
