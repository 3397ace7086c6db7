//! The reports of skipped test cases, which nobody runs. They end as canceled, with a comment, so that no
//! execution waits for them and none counts them as aborted. A required test case that is skipped was not
//! executed.

use assay_events::ExecutionAction;
use assay_proto::{CustomerId, ExecutionId, Fault, events::ReportState};
use sqlx::PgTransaction;

use super::{end_reports, events::announce};
use crate::{
    execution::store,
    progress::{
        execution::ExecutionState,
        report::{Ending, TestReportState},
    },
    test_case_state, test_report,
};

/// Ends those of the reports of a new execution whose test cases are skipped, and takes them out. Without
/// any others, the execution ends.
pub async fn skip(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    state: &mut ExecutionState,
    reports: &mut Vec<TestReportState>,
) -> Result<(), Fault> {
    let ended = end_skipped(tx, customer, state, reports).await?;
    if ended.is_empty() {
        return Ok(());
    }
    let action = if reports.is_empty() {
        state.complete();
        ExecutionAction::Completed
    } else {
        ExecutionAction::Progressed
    };
    store::save(tx, customer, state).await?;
    announce(tx, customer, state, action, &ended).await
}

/// Ends those of the pending reports without any result whose test cases are skipped, takes them out and
/// returns them.
pub(super) async fn end_skipped(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    state: &mut ExecutionState,
    reports: &mut Vec<TestReportState>,
) -> Result<Vec<ReportState>, Fault> {
    let has_results = |report: &TestReportState| report.finished_instances_count > 0;
    let cases = reports.iter().filter(|report| !has_results(report));
    let cases: Vec<_> = cases.map(|report| report.published.test_case_id.as_str()).collect();
    let project = &state.execution.project_id;
    let skipped = test_case_state::store::skipped(tx, customer, project, &cases).await?;
    if skipped.is_empty() {
        return Ok(Vec::new());
    }
    let (mut left_out, comments): (Vec<_>, Vec<_>) = reports
        .extract_if(.., |report| {
            !has_results(report) && skipped.contains_key(&report.published.test_case_id)
        })
        .map(|report| {
            let comment = skipped[&report.published.test_case_id].clone();
            let identifier = report.test_case_identifier().to_owned();
            (report, (identifier, comment))
        })
        .unzip();
    let id = ExecutionId::from_record(&state.execution.id)?;
    test_report::store::comment_cases(tx, customer, id, &comments).await?;
    end_reports(tx, customer, state, &mut left_out, Ending::Canceled).await
}
