//! Retention times and expired executions in PostgreSQL. The task reads those of all customers.

use assay_events::KnownRetention;
use assay_proto::{
    CustomerId, ExecutionId, Fault, ProjectId, TestReportId, events::RetentionChanged,
};
use sqlx::{AssertSqlSafe, FromRow, PgExecutor, PgTransaction};

/// Stores the retention time of a project, unless a newer one is stored.
pub(super) async fn save(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    project: ProjectId,
    changed: &RetentionChanged,
) -> Result<(), Fault> {
    sqlx::query(
        "insert into retention (customer_id, project_id, days, revision) values ($1, $2, $3, $4)
         on conflict on constraint retention_pkey do update
         set days = excluded.days, revision = excluded.revision
         where retention.revision < excluded.revision",
    )
    .bind(customer)
    .bind(project)
    .bind(changed.retention_in_days)
    .bind(changed.revision)
    .execute(&mut **tx)
    .await?;
    Ok(())
}

/// The retention times of projects that the catalog has, as the relation `known`. Projects that this service has
/// deleted have none.
const KNOWN: &str = "(
        select * from unnest($1::uuid[], $2::uuid[], $3::int[], $4::bigint[])
            as given (customer_id, project_id, days, revision)
        where not exists (
            select from deletion d
            where d.customer_id = given.customer_id
              and d.project_id in (given.project_id, '00000000-0000-0000-0000-000000000000')
        )
    ) as known";

/// Binds [`KNOWN`] to a statement.
macro_rules! bind_known {
    ($statement:expr, $known:expr) => {
        $statement
            .bind($known.iter().map(|one| one.customer).collect::<Vec<_>>())
            .bind($known.iter().map(|one| one.project).collect::<Vec<_>>())
            .bind($known.iter().map(|one| one.days).collect::<Vec<_>>())
            .bind($known.iter().map(|one| one.revision).collect::<Vec<_>>())
    };
}

/// Describes the stored retention times that are not those of the catalog, or from a later revision of the project, as
/// after a restore of the catalog: the next change would be ignored.
pub(super) async fn differing(
    tx: &mut PgTransaction<'_>,
    known: &[KnownRetention],
) -> Result<Vec<String>, Fault> {
    let differing = AssertSqlSafe(format!(
        "select format('project %s: ', known.project_id)
             || case when stored.days is distinct from known.days
                then format('the retention is %s, but should be %s',
                            coalesce(stored.days::text, 'null'), coalesce(known.days::text, 'null'))
                else format('the retention is of revision %s, but the project has revision %s',
                            stored.revision, known.revision) end
         from {KNOWN}
         left join retention stored on stored.customer_id = known.customer_id
             and stored.project_id = known.project_id
         where stored.days is distinct from known.days or stored.revision > known.revision
         order by known.project_id"
    ));
    Ok(bind_known!(sqlx::query_scalar(differing), known).fetch_all(&mut **tx).await?)
}

/// Stores the retention times of the catalog where others are stored.
pub(super) async fn replace(
    tx: &mut PgTransaction<'_>,
    known: &[KnownRetention],
) -> Result<(), Fault> {
    let replace = AssertSqlSafe(format!(
        "insert into retention (customer_id, project_id, days, revision)
         select * from {KNOWN} where days is not null or exists (
             select from retention stored
             where stored.customer_id = known.customer_id and stored.project_id = known.project_id
         )
         order by customer_id, project_id
         on conflict on constraint retention_pkey do update
         set days = excluded.days, revision = excluded.revision
         where retention.days is distinct from excluded.days
            or retention.revision > excluded.revision"
    ));
    bind_known!(sqlx::query(replace), known).execute(&mut **tx).await?;
    Ok(())
}

/// Expires up to 1000 executions whose retention time is over, and returns their number. Skips
/// locked ones.
pub(super) async fn expire(db: impl PgExecutor<'_>) -> Result<u64, Fault> {
    let expired = sqlx::query(
        "update execution e
         set expired_at = now()
         from (
             select e.customer_id, e.id
             from retention r
             join execution e on e.customer_id = r.customer_id and e.project_id = r.project_id
             where e.expired_at is null and e.status in ('Completed', 'Canceled')
               and e.completion_date_time < now() - make_interval(days => r.days)
             limit 1000
             for update of e skip locked
         ) as old
         where e.customer_id = old.customer_id and e.id = old.id",
    );
    Ok(expired.execute(db).await?.rows_affected())
}

/// An execution whose results are to be removed.
#[derive(FromRow)]
pub(super) struct Expired {
    pub(super) customer_id: CustomerId,
    pub(super) id: ExecutionId,
}

/// Lists up to 100 expired executions whose results may still be stored, after one of them.
pub(super) async fn expired(
    db: impl PgExecutor<'_>,
    after: Option<ExecutionId>,
) -> Result<Vec<Expired>, Fault> {
    let expired = sqlx::query_as(
        "select customer_id, id from execution
         where expired_at is not null and pruned_at is null
           and id > coalesce($1, '00000000-0000-0000-0000-000000000000')
         order by id
         limit 100",
    );
    Ok(expired.bind(after).fetch_all(db).await?)
}

/// Lists the reports of an execution, with the number of instances of each.
pub(super) async fn reports(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    execution: ExecutionId,
) -> Result<Vec<(TestReportId, i32)>, Fault> {
    let reports = sqlx::query_as(
        "select id, finished_instances_count from test_report
         where customer_id = $1 and execution_id = $2
         order by id",
    );
    Ok(reports.bind(customer).bind(execution).fetch_all(db).await?)
}

/// Marks the results of an execution as removed.
pub(super) async fn mark_pruned(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    execution: ExecutionId,
) -> Result<(), Fault> {
    sqlx::query("update execution set pruned_at = now() where customer_id = $1 and id = $2")
        .bind(customer)
        .bind(execution)
        .execute(db)
        .await?;
    Ok(())
}
