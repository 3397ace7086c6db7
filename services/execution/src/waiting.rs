//! The task that publishes that no engine has begun the work of an execution for some time, once for each
//! execution. All replicas of the service may do this at the same time.

use std::time::Duration;

use assay_database::{Database, begin};
use assay_events::ExecutionAction;
use assay_ledger::{execution::store, settle::events::announce, time_limits::TimeLimits};
use assay_proto::{CustomerId, ExecutionId, ExecutionStatus, Fault};
use assay_runtime::Runtime;
use sqlx::PgPool;

/// Interval between rounds.
const INTERVAL: Duration = Duration::from_secs(1);

/// Maximum number of executions in a round.
const BATCH: i64 = 100;

/// Starts the task.
pub(crate) fn spawn(runtime: &Runtime, database: &Database, limits: TimeLimits) {
    let failure = "cannot publish the executions that wait for engines";
    let round = move |db| async move { publish_waiting(&db, limits.queue_seconds).await };
    database.every(runtime, "waiting", INTERVAL, failure, round);
}

/// Publishes the executions that have waited for engines for this time. A failure of one does not affect the others.
pub async fn publish_waiting(db: &PgPool, seconds: u32) -> Result<(), Fault> {
    for (customer, id) in store::waiting(db, seconds, BATCH).await? {
        if let Err(fault) = publish(db, customer, id).await {
            tracing::warn!(error = %fault, execution.id = %id, "cannot publish that an execution waits");
        }
    }
    Ok(())
}

async fn publish(db: &PgPool, customer: CustomerId, id: ExecutionId) -> Result<(), Fault> {
    let mut tx = begin(db).await?;
    // Another transaction that has locked it may begin it. The next round sees whether it did.
    let Some(state) = store::try_lock(&mut tx, customer, id).await? else { return Ok(()) };
    if state.execution.status() == ExecutionStatus::Queued {
        store::mark_waited(&mut tx, customer, id).await?;
        announce(&mut tx, customer, &state, ExecutionAction::Waiting, &[]).await?;
    }
    Ok(tx.commit().await?)
}
