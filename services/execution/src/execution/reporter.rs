//! The reporters of open executions in PostgreSQL. Every statement is bound to one customer.

use assay_proto::{CustomerId, ExecutionId, Fault};
use sqlx::PgTransaction;

/// Adds a reporter to a locked execution. One that has completed takes part again.
pub(super) async fn join(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    execution: ExecutionId,
    name: &str,
) -> Result<(), Fault> {
    let join = sqlx::query(
        "insert into reporter (customer_id, execution_id, name) values ($1, $2, $3)
         on conflict on constraint reporter_pkey do update set completed_at = null",
    );
    join.bind(customer).bind(execution).bind(name).execute(&mut **tx).await?;
    Ok(())
}

/// Completes a reporter of a locked execution, whether it has joined or not.
pub(super) async fn complete(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    execution: ExecutionId,
    name: &str,
) -> Result<(), Fault> {
    let complete = sqlx::query(
        "insert into reporter (customer_id, execution_id, name, completed_at)
         values ($1, $2, $3, now())
         on conflict on constraint reporter_pkey do update set completed_at = now()",
    );
    complete.bind(customer).bind(execution).bind(name).execute(&mut **tx).await?;
    Ok(())
}

/// Counts the reporters of a locked execution that have completed, and the others.
pub(super) async fn count(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    execution: ExecutionId,
) -> Result<(i64, i64), Fault> {
    let count = sqlx::query_as(
        "select count(completed_at), count(*) - count(completed_at) from reporter
         where customer_id = $1 and execution_id = $2",
    );
    Ok(count.bind(customer).bind(execution).fetch_one(&mut **tx).await?)
}

/// Counts the reporters of a locked execution that have not completed, of those that have joined or were expected.
pub(crate) async fn count_missing(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    execution: ExecutionId,
    expected: Option<i32>,
) -> Result<i32, Fault> {
    let count = sqlx::query_scalar(
        "select (greatest(count(*), $3) - count(completed_at))::int from reporter
         where customer_id = $1 and execution_id = $2",
    );
    Ok(count.bind(customer).bind(execution).bind(expected).fetch_one(&mut **tx).await?)
}
