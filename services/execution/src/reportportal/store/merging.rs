//! Launches in PostgreSQL that are merged into one.

use assay_proto::{CustomerId, ExecutionId, Fault, LaunchId};
use sqlx::{PgExecutor, PgPool, PgTransaction};

use super::GRACE;

/// Fails unless all requests of these launches are still stored.
pub(in crate::reportportal) async fn require(
    db: &PgPool,
    customer: CustomerId,
    sources: &[LaunchId],
) -> Result<(), Fault> {
    lock(db, customer, sources).await
}

async fn lock(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    sources: &[LaunchId],
) -> Result<(), Fault> {
    let locked: Vec<LaunchId> = sqlx::query_scalar(
        "select id from launch
         where customer_id = $1 and id = any($2) and (ended_at is null or kept_until > now())
         order by id for update",
    )
    .bind(customer)
    .bind(sources)
    .fetch_all(db)
    .await?;
    if locked.len() < sources.len() {
        let reason =
            "the results of a launch were stored more than ten minutes ago, or it was merged";
        return Err(Fault::Conflict { code: "launch_ended", reason: reason.to_owned() });
    }
    Ok(())
}

/// Moves the requests of launches to another one, which is finished, and ends them. Fails if the
/// requests of one of them have been removed.
pub(in crate::reportportal) async fn merge(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    sources: &[LaunchId],
    target: LaunchId,
) -> Result<(), Fault> {
    lock(&mut **tx, customer, sources).await?;
    for statement in [
        "update launch set agent = coalesce((
             select max(agent) from launch where customer_id = $1 and id = any($2)
         ), '')
         where customer_id = $1 and id = $3 and agent = ''",
        "update launch_request set launch_id = $3 where customer_id = $1 and launch_id = any($2)",
        "update launch
         set ended_at = coalesce(ended_at, now()), last_sequence = coalesce(last_sequence, 0),
             due_at = null, leased_until = null, needs_caller = false, kept_until = null,
             merged_into = $3
         where customer_id = $1 and id = any($2)",
    ] {
        sqlx::query(statement).bind(customer).bind(sources).bind(target).execute(&mut **tx).await?;
    }
    Ok(())
}

/// Moves the requests that a merged launch has received since to the other launch, which is due a grace
/// period later. Returns whether the other launch is known.
///
/// They get further numbers: the other launch may have ended after a request with a larger one.
pub(in crate::reportportal) async fn forward(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    id: LaunchId,
    target: LaunchId,
) -> Result<bool, Fault> {
    // In one order, so that transactions do not deadlock.
    let lock = sqlx::query(
        "select from launch where customer_id = $1 and id in ($2, $3) order by id for update",
    );
    let locked = lock.bind(customer).bind(id).bind(target).fetch_all(&mut **tx).await?;
    if locked.len() < 2 {
        return Ok(false);
    }
    for statement in [
        "with moved as (
             delete from launch_request where customer_id = $1 and launch_id = $2 returning *
         )
         insert into launch_request (customer_id, launch_id, kind, item_id, parent_id, body,
             file_name, content_type)
         select customer_id, $3::uuid, kind, item_id, parent_id, body, file_name, content_type
         from moved where $4::float8 is not null
         order by sequence",
        "update launch
         set due_at = case when id = $3
                 then greatest(due_at, now() + make_interval(secs => $4)) end,
             leased_until = case when id = $3 then leased_until end
         where customer_id = $1 and id in ($2, $3)",
    ] {
        let forward = sqlx::query(statement).bind(customer).bind(id).bind(target).bind(GRACE);
        forward.execute(&mut **tx).await?;
    }
    Ok(true)
}

/// Locks an execution, so that its results do not expire. Returns whether it has any that have not.
pub(in crate::reportportal) async fn lock_unexpired(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    execution: ExecutionId,
) -> Result<bool, Fault> {
    let lock = sqlx::query(
        "select from live_execution
         where customer_id = $1 and id = $2 and expired_at is null
         for share",
    );
    let locked = lock.bind(customer).bind(execution).fetch_optional(&mut **tx).await?;
    Ok(locked.is_some())
}

/// Lets the results and the artifacts of an execution expire.
pub(in crate::reportportal) async fn expire(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    execution: ExecutionId,
) -> Result<(), Fault> {
    let expire = sqlx::query(
        "update execution set expired_at = coalesce(expired_at, now())
         where customer_id = $1 and id = $2",
    );
    expire.bind(customer).bind(execution).execute(&mut **tx).await?;
    Ok(())
}
