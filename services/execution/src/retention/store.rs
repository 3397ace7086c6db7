//! What is not kept any more, in PostgreSQL. What looks for it looks at all customers.

use assay_proto::{
    CustomerId, ExecutionId, Fault, ProjectId, TestReportId, events::RetentionChanged,
};
use sqlx::{FromRow, PgExecutor, PgTransaction};

/// Remembers what the catalog tells, unless something newer is known.
pub(super) async fn remember(
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

/// Lets some executions expire whose time has come; says how many. Those that somebody has locked
/// are left for later.
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

/// Some of the executions whose results are still there, or may be, after one of them.
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

/// The reports of an execution, and how many instances each has.
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

/// Notes that nothing is left to be removed of an execution.
pub(super) async fn note_pruned(
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
