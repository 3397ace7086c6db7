//! The task that seeks incidents in completed executions, one of each customer in turn. One replica of the
//! service does this at a time.

use std::time::Duration;

use assay_database::{Database, begin, exclusively};
use assay_proto::{CustomerId, ExecutionId, Fault};
use assay_runtime::Runtime;
use assay_work::{Attempt, Patience, Queue, Work};
use sqlx::{AssertSqlSafe, PgPool};

use super::derive::derive;

/// Seeking incidents in a completed execution. If it is dropped, the execution begins and ends none.
pub(crate) const INCIDENT: Work = Work {
    kind: "incident",
    queue: Queue::Unfinished {
        patience: Patience {
            first: Duration::from_secs(1),
            longest: Duration::from_mins(5),
            failures: 20,
        },
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

/// Maximum number of customers whose turn it is in a round.
const CUSTOMERS: i64 = 100;

/// Starts the task.
pub(crate) fn spawn(runtime: &Runtime, database: &Database) {
    let failure = "cannot read the executions in which incidents are sought";
    let round = |db| async move { seek_incidents(&db).await };
    database.every(runtime, "incidents", INTERVAL, failure, round);
}

/// Seeks incidents in all executions that have completed, each in a transaction of its own, unless another
/// replica is doing so. A failure of one does not affect the others.
pub async fn seek_incidents(db: &PgPool) -> Result<(), Fault> {
    if next(db).await?.is_empty() {
        return Ok(());
    }
    exclusively(db, "assay incidents", seek_all(db)).await.map(|_| ())
}

async fn seek_all(db: &PgPool) -> Result<(), Fault> {
    loop {
        let turns = next(db).await?;
        if turns.is_empty() {
            return Ok(());
        }
        for (customer, id) in turns {
            if let Some(attempt) = INCIDENT.begin(db, customer, id.0).await?
                && let Err(fault) = seek(db, customer, id, &attempt).await
            {
                attempt.failed(db, &fault).await?;
            }
        }
    }
}

/// Returns the earliest execution of each customer in which incidents are to be sought now.
async fn next(db: &PgPool) -> Result<Vec<(CustomerId, ExecutionId)>, Fault> {
    let is_due = INCIDENT.is_due("s.customer_id", "s.execution_id");
    let next = sqlx::query_as(AssertSqlSafe(format!(
        "select distinct on (customer_id) customer_id, execution_id from incident_search s
         where {is_due}
         order by customer_id, execution_id
         limit $1"
    )));
    Ok(next.bind(CUSTOMERS).fetch_all(db).await?)
}

async fn seek(
    db: &PgPool,
    customer: CustomerId,
    id: ExecutionId,
    attempt: &Attempt,
) -> Result<(), Fault> {
    let mut tx = begin(db).await?;
    derive(&mut tx, customer, id).await?;
    let sought =
        sqlx::query("delete from incident_search where customer_id = $1 and execution_id = $2");
    sought.bind(customer).bind(id).execute(&mut *tx).await?;
    attempt.done(&mut *tx).await?;
    Ok(tx.commit().await?)
}
