//! The task that adds the results of ended executions to those of the days of their test cases. All
//! replicas of the service may do this at the same time.

use std::time::Duration;

use assay_proto::{ExecutionId, Fault};
use assay_runtime::{Database, Runtime, begin};
use sqlx::PgPool;
use tokio::time::sleep;
use uuid::Uuid;

use super::days;

/// Interval between rounds.
const INTERVAL: Duration = Duration::from_secs(1);

/// Starts the task.
pub(crate) fn spawn(runtime: &Runtime, database: &Database) {
    let (database, stopping) = (database.clone(), runtime.stopping());
    runtime.spawn("rollup", async move {
        let work = async {
            database.ready().await;
            loop {
                if let Err(fault) = roll_up(database.pool()).await {
                    tracing::warn!(error = %fault, "cannot read the executions whose results are to be added up");
                }
                sleep(INTERVAL).await;
            }
        };
        stopping.run_until_cancelled(work).await;
        Ok(())
    });
}

/// Adds the results of all executions that have ended, each in a transaction of its own. A failure of
/// one does not affect the others.
pub async fn roll_up(db: &PgPool) -> Result<(), Fault> {
    let mut after = ExecutionId(Uuid::nil());
    loop {
        let mut tx = begin(db).await?;
        let Some((customer, id)) = days::next(&mut tx, after).await? else { return Ok(()) };
        after = id;
        match days::add(&mut tx, customer, id).await {
            Ok(()) => tx.commit().await?,
            Err(fault) => tracing::warn!(error = %fault, execution.id = %id,
                "cannot add up the results of an execution"),
        }
    }
}
