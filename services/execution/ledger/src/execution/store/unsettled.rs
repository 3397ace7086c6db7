//! Executions that need the reconciler, in PostgreSQL.

use assay_proto::{CustomerId, ExecutionId, Fault};
use sqlx::{AssertSqlSafe, PgExecutor};

/// The condition of an execution `e` whose launch has not ended. The launch ends it, so that all its
/// results are stored.
pub const IS_LAUNCHED: &str = "exists (
        select from launch l
        where l.customer_id = e.customer_id and l.execution_id = e.id and l.ended_at is null
    )";

/// Lists executions of all customers that need the reconciler: a lease has expired, the deadline
/// has passed, or every report has ended but not the execution. There are up to `limit` of each kind, those of the
/// customers in turns: the work of one, or an execution with many leases, does not delay that of others.
pub async fn unsettled(
    db: impl PgExecutor<'_>,
    limit: i64,
) -> Result<Vec<(CustomerId, ExecutionId)>, Fault> {
    let in_turns =
        "order by row_number() over (partition by customer_id order by due), due limit $1";
    let of_leases = |due: &str| {
        format!(
            "(select customer_id, execution_id as id
              from (select customer_id, execution_id, min({due}) as due from lease
                    where ended_at is null and {due} <= now()
                    group by customer_id, execution_id) as late
              where exists (
                  select from live_execution e
                  where e.customer_id = late.customer_id and e.id = late.execution_id
              )
              {in_turns})"
        )
    };
    let (expired, silent) = (of_leases("expires_at"), of_leases("times_out_at"));
    let executions = sqlx::query_as(AssertSqlSafe(format!(
        "{expired}
         union
         {silent}
         union
         (select customer_id, id
          from (select customer_id, id, deadline as due from live_execution e
                where status in ('Queued', 'Running') and deadline <= now() and not {IS_LAUNCHED})
              as late
          {in_turns})
         union
         (select customer_id, id from live_execution
          where status in ('Queued', 'Running') and mode = 'Dispatch' and test_cases_pending = 0
          order by id limit $1)"
    )));
    Ok(executions.bind(limit).fetch_all(db).await?)
}
