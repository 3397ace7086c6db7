//! The task that adds the results of ended executions to those of the days of their test cases, and queues
//! the executions for monitors. One
//! replica of the service does this at a time.

use std::time::Duration;

use assay_database::{Database, begin, exclusively};
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
    if days::next(db, ExecutionId(Uuid::nil())).await?.is_none() {
        return Ok(());
    }
    exclusively(db, "assay rollup", add_all(db)).await.map(|_| ())
}

async fn add_all(db: &PgPool) -> Result<(), Fault> {
    let mut next = days::next(db, ExecutionId(Uuid::nil())).await?;
    while let Some((customer, id)) = next {
        if let Some(attempt) = INSIGHT.begin(db, customer, id.0).await?
            && let Err(fault) = add(db, customer, id, &attempt).await
        {
            attempt.failed(db, &fault).await?;
        }
        next = days::next(db, id).await?;
    }
    Ok(())
}

/// Adds the results of an execution, unless it was deleted or left out meanwhile.
async fn add(
    db: &PgPool,
    customer: CustomerId,
    id: ExecutionId,
    attempt: &Attempt,
) -> Result<(), Fault> {
    let mut tx = begin(db).await?;
    if days::lock(&mut tx, customer, id).await? {
        days::add(&mut tx, customer, id).await?;
        monitor::store::enqueue(&mut tx, customer, id).await?;
    }
    attempt.done(&mut *tx).await?;
    Ok(tx.commit().await?)
}
