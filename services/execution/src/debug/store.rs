//! Debug records in PostgreSQL. Every statement is bound to one customer.

use assay_proto::{
    CustomerId, Fault, TestReportId,
    execution::{DebugReport, DebugTestReport},
};
use sqlx::{FromRow, PgExecutor};
use uuid::Uuid;

#[derive(FromRow)]
struct Kept {
    project_id: Uuid,
    test_case_id: Uuid,
    test_plan_id: Uuid,
    #[sqlx(flatten)]
    report: DebugTestReport,
}

/// What is kept of a report, yet without its results.
pub(super) async fn report(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    id: TestReportId,
) -> Result<DebugReport, Fault> {
    let kept: Option<Kept> = sqlx::query_as(
        "select e.project_id, r.test_case_id, r.test_plan_id, r.id, r.status, r.result,
                r.execution_number, r.requested_instances_count as instance_count,
                r.status not in ('NotExecuted', 'Running') as is_finished,
                r.start_date_time as started_at, r.finish_date_time as finished_at, r.comment,
                e.archived, e.deleted_at is not null as deleted
         from test_report r
         join execution e on e.customer_id = r.customer_id and e.id = r.execution_id
         where r.customer_id = $1 and r.id = $2",
    )
    .bind(customer)
    .bind(id)
    .fetch_optional(db)
    .await?;
    let kept = kept.ok_or(Fault::NotFound("test report"))?;
    Ok(DebugReport {
        project_id: kept.project_id.to_string(),
        test_case_id: kept.test_case_id.to_string(),
        test_plan_id: kept.test_plan_id.to_string(),
        test_report: Some(kept.report),
        ..DebugReport::default()
    })
}
