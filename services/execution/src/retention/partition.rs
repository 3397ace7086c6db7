//! The partitions that instances are in: one for each month of their reports' ids, made ahead, and
//! dropped when all that is in them has expired.

use assay_proto::Fault;
use sqlx::{PgExecutor, PgPool};

/// What PostgreSQL says when a lock was not to be had in time.
const IN_USE: &str = "55P03";

/// Makes the partitions of this month and the next ones. New reports are always in one of them, even
/// if this could not be done for weeks.
pub(super) async fn make_ahead(db: impl PgExecutor<'_>) -> Result<(), Fault> {
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

/// Drops the partitions of past months in which every execution has expired. One that is read for
/// long just then is left for the next time.
pub(super) async fn drop_expired(db: &PgPool) -> Result<(), Fault> {
    for partition in expired(db).await? {
        let dropped = sqlx::query("select drop_instance_partition($1::regclass)")
            .bind(&partition)
            .execute(db)
            .await;
        match dropped {
            Ok(_) => tracing::info!(partition, "dropped what has expired"),
            Err(sqlx::Error::Database(error)) if error.code().as_deref() == Some(IN_USE) => {
                tracing::info!(partition, "is in use and will be dropped later");
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

async fn expired(db: impl PgExecutor<'_>) -> Result<Vec<String>, Fault> {
    let partitions = sqlx::query_scalar(
        "select name
         from (
             select relname::text as name,
                    to_date(right(relname, 7), 'YYYY_MM')::timestamp at time zone 'utc' as month
             from pg_inherits join pg_class on oid = inhrelid
             where inhparent in ('instance'::regclass, 'instance_detail'::regclass)
               and relname ~ '_\\d{4}_\\d\\d$'
         ) as partition
         where month + interval '1 month' < now() - interval '1 day'
           and not exists (
               -- Reports are made right after their execution; clocks may differ.
               select from execution
               where expired_at is null and id >= first_id_at(month - interval '1 day')
                 and id < first_id_at(month + interval '1 month 1 day')
           )
         order by name",
    );
    Ok(partitions.fetch_all(db).await?)
}
