//! The metric of mails that wait.

use std::time::Duration;

use assay_proto::Fault;
use assay_runtime::{Database, Runtime};
use sqlx::{AssertSqlSafe, PgExecutor};
use tokio::time::sleep;

use super::store::{MAIL, OWNER};

/// Interval of measurements.
const INTERVAL: Duration = Duration::from_secs(15);

const AGE: &str = "assay_mail_age_seconds";

/// Starts to measure. Each replica measures the mails of all.
pub(crate) fn spawn(runtime: &Runtime, database: &Database) {
    metrics::describe_gauge!(
        AGE,
        metrics::Unit::Seconds,
        "Time since the oldest mail that waits to be sent was due."
    );
    let (database, stopping) = (database.clone(), runtime.stopping());
    runtime.spawn("age of mails", async move {
        let work = async {
            database.ready().await;
            loop {
                match oldest(database.pool()).await {
                    Ok(age) => metrics::gauge!(AGE).set(age),
                    Err(fault) => tracing::debug!(%fault, "cannot measure the age of mails"),
                }
                sleep(INTERVAL).await;
            }
        };
        stopping.run_until_cancelled(work).await;
        Ok(())
    });
}

/// Returns the seconds since the oldest mail was due that no replica is sending.
async fn oldest(db: impl PgExecutor<'_>) -> Result<f64, Fault> {
    let is_due = MAIL.is_due(OWNER, "mail.id");
    let oldest = sqlx::query_scalar(AssertSqlSafe(format!(
        "select coalesce(max(extract(epoch from now() - next_attempt_at))::float8, 0)
         from mail where next_attempt_at <= now() and {is_due}"
    )));
    Ok(oldest.fetch_one(db).await?)
}
