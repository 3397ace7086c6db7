//! Engines that have asked for work, and the queues in which work waits for them.

pub(crate) mod length;
pub(crate) mod registry;
mod service;
mod store;

use std::time::Duration;

use assay_database::Database;
use assay_runtime::Runtime;

pub(crate) use self::{service::EngineService, store::remove_all};
use crate::queue::Queue;

/// Interval at which the engines that have asked for work are written.
const PERIOD: Duration = Duration::from_secs(5);

/// Starts the tasks that write engines and measure queues until the program stops.
pub(crate) fn spawn(
    runtime: &Runtime,
    database: &Database,
    queue: &Queue,
    config: length::QueueMetrics,
) {
    let queue = queue.clone();
    database.every(runtime, "engines", PERIOD, "cannot store engines", move |db| {
        let queue = queue.clone();
        async move { queue.store_engines(&db).await }
    });
    length::spawn(runtime, database, config);
}
