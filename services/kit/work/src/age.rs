//! The metric of work that waits: the age of what is due the longest.

use std::time::Duration;

use assay_database::Database;
use assay_proto::Fault;
use assay_runtime::Runtime;
use metrics::Label;
use sqlx::{AssertSqlSafe, PgExecutor};
use tokio::time::sleep;

/// Interval of measurements.
const INTERVAL: Duration = Duration::from_secs(15);

/// The age of the oldest work that is due and that no replica is doing.
#[derive(Clone, Debug)]
pub struct Age {
    /// The name of the gauge, such as `assay_mail_age_seconds`, and its help text.
    pub metric: &'static str,
    pub help: &'static str,
    /// The label of the gauge, if it has one, with its value.
    pub label: Option<(&'static str, &'static str)>,
    /// A query of the time since which the oldest work is due, null if none is.
    pub due_since: String,
}

impl Age {
    /// Starts to measure. Each replica measures the work of all.
    pub fn spawn(self, runtime: &Runtime, database: &Database) {
        metrics::describe_gauge!(self.metric, metrics::Unit::Seconds, self.help);
        let (database, stopping) = (database.clone(), runtime.stopping());
        let labels: Vec<Label> =
            self.label.iter().map(|(name, value)| Label::from_static_parts(name, value)).collect();
        runtime.spawn("age of work", async move {
            let work = async {
                database.ready().await;
                loop {
                    match self.seconds(database.pool()).await {
                        Ok(age) => metrics::gauge!(self.metric, labels.iter()).set(age),
                        Err(fault) => {
                            tracing::debug!(metric = self.metric, %fault, "cannot measure");
                        }
                    }
                    sleep(INTERVAL).await;
                }
            };
            stopping.run_until_cancelled(work).await;
            Ok(())
        });
    }

    /// Returns the age of the oldest work in seconds, 0 if none is due.
    pub async fn seconds(&self, db: impl PgExecutor<'_>) -> Result<f64, Fault> {
        let age = sqlx::query_scalar(AssertSqlSafe(format!(
            "select coalesce(greatest(extract(epoch from now() - ({}))::float8, 0), 0)",
            self.due_since
        )));
        Ok(age.fetch_one(db).await?)
    }
}
