//! The partitions that instances are in: one for each month of their reports' ids, made ahead, and
//! dropped when all that is in them has expired.

use assay_proto::Fault;
use sqlx::{AssertSqlSafe, FromRow, PgConnection, PgExecutor, PgPool};

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

/// A table that is, or was, a partition of another one.
#[derive(FromRow)]
struct Partition {
    owner: String,
    name: String,
    /// Whether it is still attached, or was being detached when somebody died.
    attached: bool,
    detaching: bool,
}

/// Drops the partitions of past months in which every execution has expired. They are detached first
/// without a lock that anybody else would wait for, which takes until those are done who use them.
pub(super) async fn drop_expired(alone: &mut PgConnection, db: &PgPool) -> Result<(), Fault> {
    sqlx::query("set statement_timeout = 0").execute(&mut *alone).await?;
    for Partition { owner, name, attached, detaching } in expired(db).await? {
        // The names are PostgreSQL's own, and match a pattern.
        let statement = |text: String| sqlx::query(AssertSqlSafe(text));
        if attached {
            let how = if detaching { "finalize" } else { "concurrently" };
            let detach = format!("alter table {owner} detach partition {name} {how}");
            statement(detach).execute(&mut *alone).await?;
        }
        statement(format!("drop table {name}")).execute(&mut *alone).await?;
        tracing::info!(partition = name, "dropped what has expired");
    }
    Ok(())
}

async fn expired(db: impl PgExecutor<'_>) -> Result<Vec<Partition>, Fault> {
    let partitions = sqlx::query_as(
        "select partition.owner, partition.name, inhrelid is not null as attached,
                coalesce(inhdetachpending, false) as detaching
         from (
             select oid, relname::text as name, substring(relname, '^(.*)_\\d{4}_\\d\\d$') as owner,
                    to_date(right(relname, 7), 'YYYY_MM')::timestamp at time zone 'utc' as month
             from pg_class
             where relkind = 'r' and relname ~ '^instance(_detail)?_\\d{4}_\\d\\d$'
               and relnamespace = current_schema()::regnamespace
         ) as partition
         left join pg_inherits on inhrelid = oid
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
