//! Reviews in PostgreSQL. Every statement is bound to one customer.

use assay_proto::{
    CustomerId, ExecutionId, Fault, ProjectId, TestReportId, TestSetId,
    execution::{TestReport, TestReportInput},
    name_of,
};
use sqlx::PgTransaction;

use crate::test_report::{Place, store::select};

/// A report that nobody else will change before the transaction ends, and what others are told of
/// it.
#[derive(sqlx::FromRow)]
pub(super) struct Locked {
    #[sqlx(flatten)]
    pub(super) report: TestReport,
    #[sqlx(flatten)]
    pub(super) told: Told,
}

/// What others are told of a report besides the report itself.
#[derive(sqlx::FromRow)]
pub(super) struct Told {
    pub(super) execution_id: ExecutionId,
    pub(super) project_id: ProjectId,
    pub(super) test_set_id: TestSetId,
    pub(super) revision: i64,
}

/// Reads a report to review it. Its execution may go on meanwhile: it has no business with reports
/// that have ended, which are all that a review changes.
pub(super) async fn lock(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    place: Place,
) -> Result<Locked, Fault> {
    select(
        "where r.customer_id = $1 and r.id = $2
           and ($3::uuid is null or e.project_id = $3)
           and ($4::uuid is null or r.test_case_id = $4)
           and ($5::uuid is null or r.test_plan_id = $5)
         for no key update of r",
    )
    .bind(customer)
    .bind(place.id)
    .bind(place.project)
    .bind(place.test_case)
    .bind(place.test_plan)
    .fetch_optional(&mut **tx)
    .await?
    .ok_or(Fault::NotFound("test report"))
}

/// Writes down the review of a locked report.
pub(super) async fn review(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    id: TestReportId,
    review: &TestReportInput,
) -> Result<(), Fault> {
    sqlx::query(
        "update test_report set status = $3, comment = $4, revision = revision + 1
         where customer_id = $1 and id = $2",
    )
    .bind(customer)
    .bind(id)
    .bind(name_of(review.status()))
    .bind(review.comment.as_deref().filter(|comment| !comment.is_empty()))
    .execute(&mut **tx)
    .await?;
    Ok(())
}
