//! Reviews in PostgreSQL. Every statement is bound to one customer.

use assay_proto::{
    CustomerId, ExecutionId, Fault, InputColumns, ProjectId, TestReportId, TestSetId,
    execution::{TestReport, TestReportInput},
};
use sqlx::{AssertSqlSafe, PgTransaction};

use crate::test_report::{path::TestReportPath, store::select};

/// A report that no other transaction changes meanwhile, with its context.
#[derive(sqlx::FromRow)]
pub(super) struct LockedReport {
    #[sqlx(flatten)]
    pub(super) report: TestReport,
    #[sqlx(flatten)]
    pub(super) context: ReportContext,
}

/// The fields that events about a report need in addition to the report.
#[derive(sqlx::FromRow)]
pub(super) struct ReportContext {
    pub(super) execution_id: ExecutionId,
    pub(super) project_id: ProjectId,
    pub(super) test_set_id: TestSetId,
    pub(super) revision: i64,
}

/// Locks and reads a report for its review. The execution itself is not locked: results never
/// change a report that has ended, and a review changes no other.
pub(super) async fn lock(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    path: TestReportPath,
) -> Result<LockedReport, Fault> {
    select(
        "where customer_id = $1 and id = $2
           and ($3::uuid is null or project_id = $3)
           and ($4::uuid is null or test_case_id = $4)
           and ($5::uuid is null or test_plan_id = $5)
         for no key update of test_report",
    )
    .bind(customer)
    .bind(path.id)
    .bind(path.project)
    .bind(path.test_case)
    .bind(path.test_plan)
    .fetch_optional(&mut **tx)
    .await?
    .ok_or(Fault::NotFound("test report"))
}

/// Stores the review of a locked report.
pub(super) async fn save(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    id: TestReportId,
    review: &TestReportInput,
) -> Result<(), Fault> {
    let assignments = TestReportInput::assignments(3);
    let update = sqlx::query_as::<_, ()>(AssertSqlSafe(format!(
        "update test_report set {assignments}, revision = revision + 1
         where customer_id = $1 and id = $2
         returning id"
    )));
    review.bind(update.bind(customer).bind(id)).fetch_one(&mut **tx).await?;
    Ok(())
}
