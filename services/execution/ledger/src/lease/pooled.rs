//! The values of pools in PostgreSQL: at any time, each of them is that of one lease.

use std::collections::{HashMap, HashSet};

use assay_proto::{CustomerId, Fault, LeaseId, PoolId, ProjectId, execution::PoolValue};
use sqlx::{FromRow, PgExecutor, PgTransaction, types::Json};

/// The condition that the value with the id `value.id` of the customer `$1` is not used. It is used as long as the
/// lease of its last test is held. An engine whose execution was canceled may still be stopping the test:
/// it has until its lease would have been lost.
macro_rules! is_free {
    () => {
        "not exists (
             select from used_value u
             join lease l on l.customer_id = u.customer_id and l.id = u.lease_id
             where u.customer_id = $1 and u.value_id = value.id
               and (l.ended_at is null or l.outcome = 'Canceled' and l.expires_at > now())
         )"
    };
}

/// The values of the pool `$2` of the customer `$1`.
macro_rules! values {
    () => {
        "from pool p
         cross join lateral (
             select id::uuid as id, nr
             from jsonb_array_elements_text(p.value_ids) with ordinality as element (id, nr)
         ) as value
         where p.customer_id = $1 and p.id = $2"
    };
}

/// Returns the pools of a project with some names, by name. A name without a pool is left out. The pools are not
/// deleted before the transaction ends.
pub async fn of_names(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    project: ProjectId,
    names: &[&str],
) -> Result<HashMap<String, PoolId>, Fault> {
    let pools = sqlx::query_as(
        "select name, id from pool where customer_id = $1 and project_id = $2 and name = any($3)
         order by id
         for key share",
    );
    let pools: Vec<(String, PoolId)> =
        pools.bind(customer).bind(project).bind(names).fetch_all(&mut **tx).await?;
    Ok(pools.into_iter().collect())
}

/// Locks a pool until the transaction ends, if no other transaction has. Values are taken, and pools are changed,
/// by the holder of the lock alone.
pub async fn try_lock(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    pool: PoolId,
) -> Result<bool, Fault> {
    let locked = sqlx::query_scalar(
        "select pg_try_advisory_xact_lock(hashtextextended('pool ' || $1::text || $2::text, 0))",
    );
    Ok(locked.bind(customer).bind(pool).fetch_one(&mut **tx).await?)
}

/// Locks a pool until the transaction ends.
pub async fn lock(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    pool: PoolId,
) -> Result<(), Fault> {
    let lock = sqlx::query(
        "select pg_advisory_xact_lock(hashtextextended('pool ' || $1::text || $2::text, 0))",
    );
    lock.bind(customer).bind(pool).execute(&mut **tx).await?;
    Ok(())
}

/// Returns the number of values of a locked pool that are free.
pub async fn free(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    pool: PoolId,
) -> Result<i64, Fault> {
    let free = sqlx::query_scalar(concat!("select count(*) ", values!(), " and ", is_free!()));
    Ok(free.bind(customer).bind(pool).fetch_one(&mut **tx).await?)
}

/// Returns those of some pools that have no free value.
pub async fn used_up(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    pools: &[PoolId],
) -> Result<HashSet<PoolId>, Fault> {
    let used_up = sqlx::query_scalar(concat!(
        "select p.id from pool p
         where p.customer_id = $1 and p.id = any($2) and not exists (
             select from (
                 select id::uuid as id from jsonb_array_elements_text(p.value_ids) as element (id)
             ) as value
             where ",
        is_free!(),
        ")"
    ));
    let used_up: Vec<PoolId> = used_up.bind(customer).bind(pools).fetch_all(db).await?;
    Ok(used_up.into_iter().collect())
}

/// Takes a free value of a locked pool for a lease: the one that was not used, or whose last lease is the oldest.
pub async fn take(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    project: ProjectId,
    pool: PoolId,
    lease: LeaseId,
) -> Result<(), Fault> {
    let take = sqlx::query(concat!(
        "insert into used_value (customer_id, value_id, pool_id, project_id, lease_id)
         select $1, value.id, $2, $3, $4 ",
        values!(),
        " and ",
        is_free!(),
        " order by (
             select u.lease_id from used_value u where u.customer_id = $1 and u.value_id = value.id
         ) nulls first, value.nr
         limit 1
         on conflict on constraint used_value_pkey do update
         set lease_id = excluded.lease_id, pool_id = excluded.pool_id"
    ));
    let taken = take.bind(customer).bind(pool).bind(project).bind(lease).execute(&mut **tx).await?;
    if taken.rows_affected() == 1 {
        return Ok(());
    }
    Err(Fault::internal(format!("the locked pool {pool} has no free value")))
}

/// A value that a lease has taken, as it is stored.
#[derive(Debug, FromRow)]
pub struct TakenValue {
    pub lease_id: LeaseId,
    pub pool_id: PoolId,
    pub pool_name: String,
    /// None if it was removed from the pool meanwhile.
    pub value: Option<Json<PoolValue>>,
}

/// Returns the values that leases have taken.
pub async fn of_leases(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    leases: &[LeaseId],
) -> Result<Vec<TakenValue>, Fault> {
    let taken = sqlx::query_as(
        "select u.lease_id, u.pool_id, p.name as pool_name, value.value
         from used_value u
         join pool p on p.customer_id = u.customer_id and p.project_id = u.project_id
             and p.id = u.pool_id
         left join lateral (
             select element as value from jsonb_array_elements(p.values) as element
             where (element ->> 'Id')::uuid = u.value_id
         ) as value on true
         where u.customer_id = $1 and u.lease_id = any($2)",
    );
    Ok(taken.bind(customer).bind(leases).fetch_all(db).await?)
}
