//! Exclusive environments in PostgreSQL: at any time, one of them serves the test of one lease.

use std::collections::HashSet;

use assay_proto::{CustomerId, EnvironmentId, Fault, LeaseId, ProjectId};
use sqlx::{PgExecutor, PgTransaction};

/// The environments `o` of the customer `$1` that are occupied. An environment is as long as the lease of its last
/// test is held. An engine whose execution was canceled may still be stopping the test: it has until its lease would
/// have been lost.
macro_rules! occupied {
    () => {
        "from occupied_environment o
         join lease l on l.customer_id = o.customer_id and l.id = o.lease_id
         where o.customer_id = $1
           and (l.ended_at is null or l.outcome = 'Canceled' and l.expires_at > now())"
    };
}

/// Returns those of some environments that are occupied.
pub async fn occupied(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    environments: &[EnvironmentId],
) -> Result<HashSet<EnvironmentId>, Fault> {
    let occupied = sqlx::query_scalar(concat!(
        "select o.environment_id ",
        occupied!(),
        " and o.environment_id = any($2)"
    ));
    let occupied: Vec<EnvironmentId> =
        occupied.bind(customer).bind(environments).fetch_all(db).await?;
    Ok(occupied.into_iter().collect())
}

/// Whether an environment is free for another test. While it is, and until the transaction ends, no
/// other transaction occupies it.
pub async fn is_free(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    environment: EnvironmentId,
) -> Result<bool, Fault> {
    let locked = sqlx::query_scalar(
        "select pg_try_advisory_xact_lock(hashtextextended($1::text || $2::text, 0))",
    );
    // Another transaction is about to occupy it.
    if !locked.bind(customer).bind(environment).fetch_one(&mut **tx).await? {
        return Ok(false);
    }
    let free = sqlx::query_scalar(concat!(
        "select not exists (select ",
        occupied!(),
        " and o.environment_id = $2)"
    ));
    Ok(free.bind(customer).bind(environment).fetch_one(&mut **tx).await?)
}

/// Occupies a free environment for the test of a lease.
pub async fn occupy(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    project: ProjectId,
    environment: EnvironmentId,
    lease: LeaseId,
) -> Result<(), Fault> {
    let occupy = sqlx::query(
        "insert into occupied_environment (customer_id, environment_id, project_id, lease_id)
         values ($1, $2, $3, $4)
         on conflict (customer_id, environment_id) do update set lease_id = excluded.lease_id",
    );
    occupy.bind(customer).bind(environment).bind(project).bind(lease).execute(&mut **tx).await?;
    Ok(())
}

/// Records that the engine of a canceled lease has stopped its test.
pub async fn leave(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    id: LeaseId,
) -> Result<(), Fault> {
    let leave = sqlx::query(
        "update lease set expires_at = least(expires_at, now())
         where customer_id = $1 and id = $2 and outcome = 'Canceled'",
    );
    leave.bind(customer).bind(id).execute(&mut **tx).await?;
    Ok(())
}
