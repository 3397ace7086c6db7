//! The task that adds the results of ended executions to those of the days of their test cases, and queues
//! the executions for monitors.

use std::time::Duration;

use assay_database::{Database, begin};
use assay_proto::{CustomerId, ExecutionId, Fault};
use assay_runtime::Runtime;
use assay_work::Attempt;
use sqlx::PgPool;
use uuid::Uuid;

use super::days::{self, INSIGHT};
use crate::monitor;

/// Interval between rounds.
const INTERVAL: Duration = Duration::from_secs(1);

/// Starts the task.
pub(crate) fn spawn(runtime: &Runtime, database: &Database) {
    let failure = "cannot read the executions whose results are to be added up";
    let round = |db| async move { roll_up(&db).await };
    database.every(runtime, "rollup", INTERVAL, failure, round);
}

/// Adds the results of all executions that have ended, each in a transaction of its own, unless another
/// replica is doing so. A failure of one does not affect the others.
pub async fn roll_up(db: &PgPool) -> Result<(), Fault> {
    INSIGHT.do_all(db, |db| async move { days::due(&db).await }, add).await
}

/// Adds the results of an execution, unless it was deleted or left out meanwhile.
async fn add(db: PgPool, customer: CustomerId, id: Uuid, attempt: Attempt) -> Result<(), Fault> {
    let id = ExecutionId(id);
    let mut tx = begin(&db).await?;
    if days::lock(&mut tx, customer, id).await? {
        days::add(&mut tx, customer, id).await?;
        monitor::store::enqueue(&mut tx, customer, id).await?;
    }
    attempt.done(&mut *tx).await?;
    Ok(tx.commit().await?)
}
