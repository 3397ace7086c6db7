//! Open executions, and the reports that they have received.

use assay_proto::{CustomerId, ExecutionId, Fault, TestSetId, Timestamp};
use sqlx::{PgExecutor, PgTransaction};

/// Finds the open execution of a test set with this key.
pub async fn find_open(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    set: TestSetId,
    key: &str,
) -> Result<Option<ExecutionId>, Fault> {
    let found = sqlx::query_scalar(
        "select id from live_execution where customer_id = $1 and test_set_id = $2 and key = $3",
    );
    Ok(found.bind(customer).bind(set).bind(key).fetch_optional(db).await?)
}

/// Returns whether a time has passed.
pub async fn has_passed(db: impl PgExecutor<'_>, time: Timestamp) -> Result<bool, Fault> {
    let passed = sqlx::query_scalar("select $1 <= now()").bind(time);
    Ok(passed.fetch_one(db).await?)
}

/// Prepares the storage of results from the past: that of their month may have been removed.
pub async fn prepare_past(
    tx: &mut PgTransaction<'_>,
    request_time: Timestamp,
) -> Result<(), Fault> {
    let prepare = sqlx::query("select make_past_partitions($1)").bind(request_time);
    prepare.execute(&mut **tx).await?;
    Ok(())
}

/// Begins the grace period of a locked open execution again.
pub async fn prolong(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    id: ExecutionId,
) -> Result<(), Fault> {
    let prolong = sqlx::query(
        "update execution
         set deadline = least(last_deadline, now() + make_interval(secs => grace_in_sec))
         where customer_id = $1 and id = $2 and is_open",
    );
    prolong.bind(customer).bind(id).execute(&mut **tx).await?;
    Ok(())
}

/// Remembers that a report was uploaded to a locked execution. Returns whether it is the first time.
pub async fn remember_upload(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    id: ExecutionId,
    digest: &[u8],
) -> Result<bool, Fault> {
    let remember = sqlx::query(
        "insert into upload (customer_id, execution_id, digest) values ($1, $2, $3)
         on conflict on constraint upload_pkey do nothing",
    );
    let done = remember.bind(customer).bind(id).bind(digest).execute(&mut **tx).await?;
    Ok(done.rows_affected() == 1)
}

/// Returns whether a report with this digest was uploaded to an execution before.
pub async fn has_upload(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    id: ExecutionId,
    digest: &[u8],
) -> Result<bool, Fault> {
    let exists = sqlx::query_scalar(
        "select exists (
             select from upload where customer_id = $1 and execution_id = $2 and digest = $3
         )",
    );
    Ok(exists.bind(customer).bind(id).bind(digest).fetch_one(db).await?)
}
