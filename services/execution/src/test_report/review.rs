//! Reviews: the judgement of finished test reports by users.

mod bulk;
mod seen;
mod selection;
mod store;

use assay_auth::Caller;
use assay_events::{Event, EventType, ReportsAction, publish};
use assay_proto::{
    ExecutionId, Fault, ProjectId,
    events::{ReportState, ReportsChanged},
    execution::{ReviewInput, ReviewedTestReports, TestReport, TestReportInput},
};
use assay_records::Change;
use sqlx::PgTransaction;

use self::{
    selection::Review,
    store::{LockedReport, ReportContext},
};
use super::{path::TestReportPath, rules};
use crate::known_failure::store::latest_end;

const REVIEWED: EventType = EventType::Reports(ReportsAction::Reviewed);

/// Stores and publishes the review of a report. Returns the reviewed report.
pub(super) async fn review(
    tx: &mut PgTransaction<'_>,
    caller: &Caller,
    path: TestReportPath,
    change: Change<TestReportInput>,
) -> Result<TestReport, Fault> {
    let current = store::lock(tx, caller.customer, path).await?.report;
    let review = change.apply("test report", &current, &current.data_version)?;
    let review = rules::check_review(caller, &current, review)?;
    store::save(tx, caller, path.id, &review).await?;
    let LockedReport { report, context } = store::read(tx, caller.customer, path).await?;
    let reviewed = reviewed(&report, &context);
    let event = Event::new(caller.customer, context.execution_id, REVIEWED, &reviewed)?;
    publish(tx, &event).await?;
    Ok(report)
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

/// Returns the data of the event.
fn reviewed(report: &TestReport, context: &ReportContext) -> ReportsChanged {
    let state = ReportState {
        id: report.id.clone(),
        test_case_id: report.test_case_id.clone(),
        test_plan_id: report.test_plan_id.clone(),
        execution_number: report.execution_number,
        result: report.result,
        status: report.status,
        start_date_time: report.start_date_time,
        finish_date_time: report.finish_date_time,
        average_duration_in_sec: report.average_duration_in_sec,
        revision: context.revision,
        change: report.change,
    };
    ReportsChanged {
        execution_id: context.execution_id.to_string(),
        project_id: context.project_id.to_string(),
        test_set_id: context.test_set_id.to_string(),
        action: REVIEWED.action().to_owned(),
        software_name: report.subject_name.clone(),
        software_identifier: report.subject_identifier.clone(),
        reports: vec![state],
        is_past: context.past_end.map(|_| true),
    }
}
