//! The task that seeks incidents in completed executions, in turns of customers.

use std::time::Duration;

use assay_database::{Database, begin};
use assay_proto::{CustomerId, ExecutionId, Fault};
use assay_runtime::Runtime;
use assay_work::{Attempt, Patience, Queue, Waiting, Work};
use sqlx::PgPool;
use uuid::Uuid;

use super::derive::derive;

/// Seeking incidents in a completed execution. If it is dropped, the execution begins and ends none.
pub(crate) const INCIDENT: Work = Work {
    kind: "incident",
    queue: Queue::Unfinished {
        patience: Patience::of_derivations(),
        pending: "exists (
            select from incident_search s
            where s.customer_id = w.customer_id and s.execution_id = w.id
        )",
        drop: "delete from incident_search
               where (customer_id, execution_id) in (select * from unnest($1::uuid[], $2::uuid[]))",
    },
};

/// Interval between rounds.
const INTERVAL: Duration = Duration::from_secs(1);

/// The completed executions in which incidents are still to be sought.
const SEARCHES: Waiting =
    Waiting { table: "incident_search", id: "execution_id", condition: "true" };

/// Starts the task.
pub(crate) fn spawn(runtime: &Runtime, database: &Database) {
    let failure = "cannot read the executions in which incidents are sought";
    let round = |db| async move { seek_incidents(&db).await };
    database.every(runtime, "incidents", INTERVAL, failure, round);
}

/// Seeks incidents in all executions that have completed, each in a transaction of its own, unless another
/// replica is doing so. A failure of one does not affect the others.
pub async fn seek_incidents(db: &PgPool) -> Result<(), Fault> {
    let due = |db| async move { INCIDENT.due_of(&db, SEARCHES).await };
    INCIDENT.do_all(db, due, seek).await
}

async fn seek(db: PgPool, customer: CustomerId, id: Uuid, attempt: Attempt) -> Result<(), Fault> {
    let mut tx = begin(&db).await?;
    derive(&mut tx, customer, ExecutionId(id)).await?;
    let sought =
        sqlx::query("delete from incident_search where customer_id = $1 and execution_id = $2");
    sought.bind(customer).bind(id).execute(&mut *tx).await?;
    attempt.done(&mut *tx).await?;
    Ok(tx.commit().await?)
}
