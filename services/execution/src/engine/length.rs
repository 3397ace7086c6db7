//! Metrics of the work that waits for engines.
//!
//! Names of labels are those of customers, so they do not become labels of metrics by themselves: the
//! operator names the ones that do.

use std::{collections::HashMap, time::Duration};

use assay_database::Database;
use assay_proto::Fault;
use assay_runtime::Runtime;
use sqlx::PgPool;

use super::store;

/// Interval at which the work is counted.
const PERIOD: Duration = Duration::from_secs(15);

/// The metric of queued work.
const QUEUED: &str = "assay_schedules_queued";

/// Label of the work in all other queues.
const OTHER: &str = "other";

/// Maximum number of labels in metrics.
const MOST: usize = 100;

/// Settings of metrics of queues.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct QueueMetrics {
    /// Target groups and labels whose queued work has a metric of its own, separated by commas; at most
    /// 100. All other work is counted as `other`
    #[arg(long, env = "ASSAY_QUEUE_METRICS", value_delimiter = ',')]
    pub queue_metrics: Vec<String>,
}

/// Starts the task that counts queued work until the program stops.
pub(crate) fn spawn(runtime: &Runtime, database: &Database, config: QueueMetrics) {
    metrics::describe_gauge!(
        QUEUED,
        metrics::Unit::Count,
        "Tests that wait for engines, over all customers, by the first label that they need; at most 1,000,000 in \
         total."
    );
    let mut labels = config.queue_metrics;
    labels.truncate(MOST);
    database.every(runtime, "queue-metrics", PERIOD, "cannot count queued work", move |db| {
        let labels = labels.clone();
        async move { measure(&db, &labels).await }
    });
}

async fn measure(db: &PgPool, labels: &[String]) -> Result<(), Fault> {
    let names = labels.iter().map(String::as_str).chain([OTHER]);
    let mut queued: HashMap<&str, i64> = names.map(|name| (name, 0)).collect();
    for (queue, count) in store::lengths_of_all(db).await? {
        let known = labels.iter().find(|label| *label == queue.first_label());
        *queued.entry(known.map_or(OTHER, String::as_str)).or_default() += count;
    }
    for (name, count) in queued {
        #[expect(clippy::cast_precision_loss, reason = "counts are far below 2^53")]
        let count = count as f64;
        metrics::gauge!(QUEUED, "queue" => name.to_owned()).set(count);
    }
    Ok(())
}
