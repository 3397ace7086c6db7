//! Executions that wait for engines, in PostgreSQL.

use assay_proto::{CustomerId, ExecutionId, Fault};
use sqlx::{PgExecutor, PgTransaction};

/// Returns queued executions of all customers that were requested longer ago than this and are not marked as
/// waiting: the oldest of each customer first, so that those of one do not delay those of others.
pub async fn waiting(
    db: impl PgExecutor<'_>,
    seconds: u32,
    limit: i64,
) -> Result<Vec<(CustomerId, ExecutionId)>, Fault> {
    let waiting = sqlx::query_as(
        "select customer_id, id from live_execution
         where status = 'Queued' and not has_waited
           and request_time < now() - make_interval(secs => $1)
         order by row_number() over (partition by customer_id order by request_time), request_time
         limit $2",
    );
    Ok(waiting.bind(f64::from(seconds)).bind(limit).fetch_all(db).await?)
}

/// Marks a locked execution: it was published that it waits for engines.
pub async fn mark_waited(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    id: ExecutionId,
) -> Result<(), Fault> {
    let mark = "update execution set has_waited = true where customer_id = $1 and id = $2";
    sqlx::query(mark).bind(customer).bind(id).execute(&mut **tx).await?;
    Ok(())
}
