//! The attempts of results in PostgreSQL. Every statement is bound to one customer.

use std::collections::HashMap;

use assay_proto::{CustomerId, ExecutionId, Fault};
use sqlx::PgTransaction;
use uuid::Uuid;

use super::body::AttemptOf;

/// Maximum time from the last results of a run until its execution ends, in seconds. Many clients do
/// not close their runs.
const GRACE_WITH_RESULTS: i32 = 7200;

/// Shortens the grace period of a locked open execution to that of a run with results, and begins it
/// again.
pub(super) async fn shorten_grace(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    execution: ExecutionId,
) -> Result<(), Fault> {
    let shorten = sqlx::query(
        "update execution
         set grace_in_sec = least(grace_in_sec, $3),
             deadline = least(last_deadline, now() + make_interval(secs => least(grace_in_sec, $3)))
         where customer_id = $1 and id = $2 and is_open and completion_date_time is null",
    );
    shorten.bind(customer).bind(execution).bind(GRACE_WITH_RESULTS).execute(&mut **tx).await?;
    Ok(())
}

/// Returns the last attempts of the instances of test cases in a locked execution, by identifier.
pub(super) async fn last_attempts(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    execution: ExecutionId,
    identifiers: &[&str],
) -> Result<HashMap<String, AttemptOf>, Fault> {
    let attempts: Vec<(String, Uuid, i32, i32)> = sqlx::query_as(
        "select r.test_case_identifier, r.id, i.instance_nr, i.attempt
         from test_report r
         join instance i on i.customer_id = $1 and i.test_report_id = r.id
             and i.reporter = '' and i.variant = ''
         where r.customer_id = $1 and r.execution_id = $2 and r.test_case_identifier = any($3)
         order by i.instance_nr desc",
    )
    .bind(customer)
    .bind(execution)
    .bind(identifiers)
    .fetch_all(&mut **tx)
    .await?;
    let attempts = attempts.into_iter();
    Ok(attempts
        .map(|(case, report, instance, attempt)| (case, AttemptOf { report, instance, attempt }))
        .collect())
}

/// Locks an execution whose results have not expired.
pub(super) async fn lock_execution(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    execution: ExecutionId,
) -> Result<(), Fault> {
    let lock = sqlx::query(
        "select from live_execution
         where customer_id = $1 and id = $2 and expired_at is null
         for update",
    );
    let locked = lock.bind(customer).bind(execution).fetch_optional(&mut **tx).await?;
    locked.map(drop).ok_or(Fault::NotFound("result"))
}

/// Reads the steps of an attempt of a locked execution, in their stored form.
pub(super) async fn steps(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    of: &AttemptOf,
) -> Result<Vec<u8>, Fault> {
    let steps = sqlx::query_scalar(
        "select steps from attempt
         where customer_id = $1 and test_report_id = $2 and instance_nr = $3 and attempt = $4",
    );
    let steps = steps.bind(customer).bind(of.report).bind(of.instance).bind(of.attempt);
    steps.fetch_optional(&mut **tx).await?.ok_or(Fault::NotFound("result"))
}

/// Replaces the steps of an attempt of a locked execution.
pub(super) async fn replace_steps(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    of: &AttemptOf,
    steps: &[u8],
) -> Result<(), Fault> {
    let replace = sqlx::query(
        "update attempt set steps = $5
         where customer_id = $1 and test_report_id = $2 and instance_nr = $3 and attempt = $4",
    );
    let replace = replace.bind(customer).bind(of.report).bind(of.instance).bind(of.attempt);
    replace.bind(steps).execute(&mut **tx).await?;
    Ok(())
}
