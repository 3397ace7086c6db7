//! Reviews: the judgement of finished test reports by users.

mod bulk;
mod seen;
mod selection;
mod store;
mod undo;

use assay_auth::Caller;
use assay_events::{Event, EventType, ReportsAction, publish_all};
use assay_ledger::{
    known_failure::store::latest_end,
    progress::execution::ExecutionState,
    test_report::{
        path::TestReportPath,
        store::{get, of_ids},
    },
};
use assay_proto::{
    CustomerId, ExecutionId, Fault, ProjectId,
    events::ReportState,
    execution::{ReviewInput, ReviewedTestReports, TestReport, TestReportInput},
};
use assay_records::Change;
use sqlx::PgTransaction;

use self::selection::Review;
pub(super) use self::undo::undo;
use super::rules;

/// Stores and publishes the review of a report. Returns the reviewed report.
pub(super) async fn review(
    tx: &mut PgTransaction<'_>,
    caller: &Caller,
    path: TestReportPath,
    change: Change<TestReportInput>,
) -> Result<TestReport, Fault> {
    let customer = caller.customer;
    let (execution, current) = store::lock(tx, customer, path).await?;
    let review = change.apply("test report", &current, &current.data_version)?;
    let review = rules::check_review(caller, &current, review)?;
    store::save(tx, caller, path.id, &review).await?;
    let reviewed = of_ids(tx, customer, &[path.id]).await?.into_iter();
    let reviewed: Vec<_> = reviewed.map(|report| report.published).collect();
    publish_reviewed(tx, customer, &execution, &reviewed).await?;
    get(&mut **tx, customer, path).await
}

/// Publishes that reports of a locked execution were reviewed.
async fn publish_reviewed(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    execution: &ExecutionState,
    reviewed: &[ReportState],
) -> Result<(), Fault> {
    let (action, id) = (ReportsAction::Reviewed, &execution.execution.id);
    let changed = execution.reports_changed(action, reviewed);
    let event = |changed| Event::new(customer, id, EventType::Reports(action), &changed);
    publish_all(tx, changed.map(event)).await
}

/// Stores and publishes the review of several reports of an execution, all or none.
pub(super) async fn review_several(
    tx: &mut PgTransaction<'_>,
    caller: &Caller,
    path: (Option<ProjectId>, ExecutionId),
    input: ReviewInput,
) -> Result<ReviewedTestReports, Fault> {
    let latest_end = latest_end(&mut **tx).await?;
    bulk::review(tx, caller, path, &Review::of(caller, input, latest_end)?).await
}
