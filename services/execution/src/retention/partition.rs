//! The partitions of instances, by the month of their report's id. They are created in advance, and
//! dropped when all their executions have expired.

use assay_proto::Fault;
use sqlx::{PgExecutor, PgPool};

/// The SQLSTATE of a partition that is not dropped now: a lock was not acquired within the lock timeout, or an
/// execution was added to its month meanwhile.
const LOCK_NOT_AVAILABLE: &str = "55P03";

/// Creates the partitions of this month and the two next ones. Thus new reports have a partition
/// even if this fails for weeks.
pub(super) async fn create_next(db: impl PgExecutor<'_>) -> Result<(), Fault> {
    sqlx::query(
        "select make_instance_partitions(
             (date_trunc('month', now() at time zone 'utc') + n * interval '1 month')::date
         )
         from generate_series(0, 2) as n",
    )
    .execute(db)
    .await?;
    Ok(())
}

/// Drops the partitions of past months in which every execution has expired. A partition that is in
/// use is dropped in a later run.
pub(super) async fn drop_expired(db: &PgPool) -> Result<(), Fault> {
    for partition in expired(db).await? {
        let dropped = sqlx::query("select drop_instance_partition($1::regclass)")
            .bind(&partition)
            .execute(db)
            .await;
        match dropped {
            Ok(_) => tracing::info!(partition, "dropped an expired partition"),
            Err(sqlx::Error::Database(error))
                if error.code().as_deref() == Some(LOCK_NOT_AVAILABLE) =>
            {
                tracing::info!(partition, "an expired partition is in use and is dropped later");
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Lists the partitions in which every execution has expired.
async fn expired(db: impl PgExecutor<'_>) -> Result<Vec<String>, Fault> {
    let partitions = sqlx::query_scalar(
        "select name
         from (
             select relname::text as name,
                    to_date(right(relname, 7), 'YYYY_MM')::timestamp at time zone 'utc' as month
             from pg_inherits join pg_class on oid = inhrelid
             where inhparent in ('instance'::regclass, 'attempt'::regclass)
               and relname ~ '_\\d{4}_\\d\\d$'
         ) as partition
         where month + interval '1 month' < now() - interval '1 day'
           and not exists (
               -- The ids of reports have the time of their execution. Clocks may differ.
               select from execution
               where expired_at is null and id >= first_id_at(month - interval '1 day')
                 and id < first_id_at(month + interval '1 month 1 day')
           )
         order by name",
    );
    Ok(partitions.fetch_all(db).await?)
}
