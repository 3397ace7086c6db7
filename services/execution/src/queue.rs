//! Notifies waiting engines of new work and of the end of their work, and readers of live logs of text.

use std::time::Duration;

use assay_database::Database;
use assay_fair::{Notifier, OfCustomer};
use assay_ledger::schedule::queue::QueueName;
use assay_proto::{CustomerId, ExecutionId, Fault, TestReportId, execution::LeaseInput};
use assay_runtime::Runtime;
use async_nats::Client;
use serde::{Deserialize, Serialize};
use sqlx::PgPool;
use tokio::time::Instant;

use crate::{engine::registry::Registry, signal::Signal};

/// The NATS subject on which programs publish that schedules were queued.
const QUEUED: &str = "assay.queued";

/// The NATS subject on which programs publish that engines should stop the tests of an execution.
const STOPPED: &str = "assay.stopped";

/// The NATS subject on which programs publish that the log of a test report has more text.
const LOGGED: &str = "assay.logged";

/// Interval at which the engines that have asked for work are stored.
const STORED: Duration = Duration::from_secs(5);

/// The queues whose first label is this one.
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

/// The engines that wait for work or for the end of their work, and the readers of their logs.
#[derive(Clone)]
pub struct Queue {
    queued: Signal<GroupQueue>,
    stopped: Signal<(CustomerId, ExecutionId)>,
    logged: Signal<(CustomerId, TestReportId)>,
    engines: Registry,
}

impl Queue {
    /// Returns a queue that notifies only the engines that wait at this process.
    pub fn local(runtime: &Runtime) -> Self {
        Self::open(runtime, None)
    }

    /// Returns a queue that notifies the engines that wait at any process.
    pub fn connect(runtime: &Runtime, nats: Client) -> Self {
        Self::open(runtime, Some(nats))
    }

    fn open(runtime: &Runtime, nats: Option<Client>) -> Self {
        let queued = Signal::new(runtime, Notifier::new(runtime), QUEUED, nats.clone());
        let stopped = Signal::new(runtime, Notifier::without_polls(runtime), STOPPED, nats.clone());
        let logged = Signal::new(runtime, Notifier::new(runtime), LOGGED, nats);
        Self { queued, stopped, logged, engines: Registry::default() }
    }

    /// Starts the task that stores the engines that have asked for work, until the program stops.
    pub(crate) fn spawn(&self, runtime: &Runtime, database: &Database) {
        let queue = self.clone();
        database.every(runtime, "engines", STORED, "cannot store engines", move |db| {
            let queue = queue.clone();
            async move { queue.store_engines(&db).await }
        });
    }

    /// Returns the number of engines that wait for work at this process.
    pub fn waiting(&self) -> usize {
        self.queued.waiting.sleeping()
    }

    /// Notes that an engine asks for work.
    pub(crate) fn note_engine(&self, customer: CustomerId, input: &LeaseInput) {
        self.engines.note(customer, input);
    }

    /// Stores the engines that have asked for work since the last time.
    pub async fn store_engines(&self, db: &PgPool) -> Result<(), Fault> {
        self.engines.store(db).await
    }

    /// Returns the number of heartbeats that wait for the end of their work at this process.
    pub fn heartbeats(&self) -> usize {
        self.stopped.waiting.sleeping()
    }

    /// Returns the number of readers that wait for the text of logs at this process.
    pub fn readers(&self) -> usize {
        self.logged.waiting.sleeping()
    }

    /// Notifies the engines that offer the first label of a queue that there is work. Must follow the
    /// commit.
    pub(crate) async fn notify(&self, customer: CustomerId, queue: &QueueName) {
        let target_group = queue.first_label().to_owned();
        self.queued.send(&GroupQueue { customer, target_group }).await;
    }

    /// Notifies the engines that run tests of an execution that some of them should stop. Must follow
    /// the commit.
    pub(crate) async fn stop(&self, customer: CustomerId, execution: ExecutionId) {
        self.stopped.send(&(customer, execution)).await;
    }

    /// Notifies the readers of the log of a test report that it has more text. Must follow the commit.
    pub(crate) async fn log(&self, customer: CustomerId, report: TestReportId) {
        self.logged.send(&(customer, report)).await;
    }

    /// Polls for the text of a log, and again after each notification, until there is some, `wait` is
    /// over or the program stops.
    pub(crate) async fn wait_for_log<T, F: Future<Output = Result<Option<T>, Fault>>>(
        &self,
        customer: CustomerId,
        report: TestReportId,
        wait: Duration,
        mut poll: impl FnMut() -> F,
    ) -> Result<Option<T>, Fault> {
        if wait.is_zero() {
            return poll().await;
        }
        let log = self.logged.waiting.register((customer, report))?;
        log.poll(Some(Instant::now() + wait), poll).await
    }

    /// Polls for work that needs some of these labels, and again after each notification, until there
    /// is some, `wait` is over or the program stops.
    pub(crate) async fn wait<T, F: Future<Output = Result<Option<T>, Fault>>>(
        &self,
        customer: CustomerId,
        labels: Vec<String>,
        wait: Duration,
        mut poll: impl FnMut() -> F,
    ) -> Result<Option<T>, Fault> {
        if wait.is_zero() {
            return poll().await;
        }
        let queues = labels.into_iter().map(|target_group| GroupQueue { customer, target_group });
        let waiter = self.queued.waiting.register_any(customer, queues)?;
        waiter.poll(Some(Instant::now() + wait), poll).await
    }

    /// Polls whether the engines of an execution should stop, and again after each notification and
    /// at the end of the wait, until they should. Polls once if too many wait.
    pub(crate) async fn wait_for_stop<T, F: Future<Output = Result<Option<T>, Fault>>>(
        &self,
        customer: CustomerId,
        execution: ExecutionId,
        wait: Duration,
        mut poll: impl FnMut() -> F,
    ) -> Result<Option<T>, Fault> {
        match self.stopped.waiting.register((customer, execution)) {
            Ok(waiter) if !wait.is_zero() => waiter.poll(Some(Instant::now() + wait), poll).await,
            _ => poll().await,
        }
    }
}
