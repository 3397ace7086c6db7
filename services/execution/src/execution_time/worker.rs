//! The task that stores the execution times of ended executions.

use std::time::Duration;

use assay_database::{Database, begin};
use assay_proto::{CustomerId, ExecutionId, Fault};
use assay_runtime::Runtime;
use assay_work::Attempt;
use sqlx::PgPool;
use uuid::Uuid;

use super::store::{self, EXECUTION_TIME};

/// Interval between rounds.
const INTERVAL: Duration = Duration::from_secs(1);

/// Starts the task.
pub(crate) fn spawn(runtime: &Runtime, database: &Database) {
    let failure = "cannot read the executions whose times are to be stored";
    let round = |db| async move { count_execution_times(&db).await };
    database.every(runtime, "execution-time", INTERVAL, failure, round);
}

/// Stores the times of all executions that have ended, each in a transaction of its own, unless another
/// replica is doing so. A failure of one does not affect the others.
pub async fn count_execution_times(db: &PgPool) -> Result<(), Fault> {
    EXECUTION_TIME.do_all(db, |db| async move { store::due(&db).await }, count).await
}

/// Stores the time of an execution, unless it was deleted or left out meanwhile.
async fn count(db: PgPool, customer: CustomerId, id: Uuid, attempt: Attempt) -> Result<(), Fault> {
    let mut tx = begin(&db).await?;
    store::count(&mut tx, customer, ExecutionId(id)).await?;
    attempt.done(&mut *tx).await?;
    Ok(tx.commit().await?)
}
