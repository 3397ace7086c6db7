//! Launches in PostgreSQL that are merged into one.

use assay_proto::{CustomerId, ExecutionId, Fault, LaunchId};
use sqlx::{PgExecutor, PgPool, PgTransaction};

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
             due_at = null, leased_until = null, kept_until = null
         where customer_id = $1 and id = any($2) and $3::uuid is not null",
    ] {
        sqlx::query(statement).bind(customer).bind(sources).bind(target).execute(&mut **tx).await?;
    }
    Ok(())
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
