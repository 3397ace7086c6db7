//! The state of an execution as it follows from its results, by the functions that set it while results
//! arrive.

use assay_ledger::{
    change,
    execution::store::has_expired,
    mute,
    progress::{
        execution::ExecutionState, report::TestReportState, rules::is_pending, totals::Recount,
    },
    test_report::store::{self, RecordedReport},
};
use assay_proto::{
    CustomerId, ExecutionId, ExecutionStatus, Fault, ReportStatus, TestResult,
    execution::ExecutionMode, value_of,
};
use sqlx::PgTransaction;

/// Derives an execution and its reports from what is recorded. Of an execution that has expired, whose
/// instances may have been removed, only what follows from its reports is derived.
pub(super) async fn derive(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    stored: &ExecutionState,
    recorded: &[RecordedReport],
) -> Result<(ExecutionState, Vec<TestReportState>), Fault> {
    let id = ExecutionId::from_record(&stored.execution.id)?;
    let reports = if has_expired(&mut **tx, customer, id).await? {
        let unchanged = |report: &RecordedReport| report.state.clone();
        let mut reports: Vec<_> = recorded.iter().map(unchanged).collect();
        change::determine_all(tx, customer, stored, &mut reports).await?;
        reports
    } else {
        derive_reports(tx, customer, stored, recorded).await?
    };
    let mut execution = stored.clone();
    execution.count_all(&reports);
    // The reports of skipped test cases are canceled before any other has begun.
    let has_begun = reports.iter().any(|one| {
        !matches!(one.published.status(), ReportStatus::NotExecuted | ReportStatus::Canceled)
    });
    execution.execution.set_status(status(stored, has_begun));
    Ok((execution, reports))
}

async fn derive_reports(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    execution: &ExecutionState,
    recorded: &[RecordedReport],
) -> Result<Vec<TestReportState>, Fault> {
    let id = ExecutionId::from_record(&execution.execution.id)?;
    let ids: Vec<_> = recorded.iter().map(|report| report.state.published.id.as_str()).collect();
    let recounts = store::recount(tx, customer, &ids).await?;
    let none = Recount::default();
    let of_instances = |report: &RecordedReport| {
        let recount = recounts.get(&report.state.published.id).unwrap_or(&none);
        derive_report(execution, report, recount)
    };
    let mut reports: Vec<_> = recorded.iter().map(of_instances).collect();
    change::determine_all(tx, customer, execution, &mut reports).await?;
    let known = mute::marked(tx, customer, id).await?;
    for report in &mut reports {
        let fails = report.ended_result().is_some_and(TestResult::is_failure);
        report.published.is_muted = Some(fails && known.contains(&report.published.id));
    }
    Ok(reports)
}

fn derive_report(
    execution: &ExecutionState,
    recorded: &RecordedReport,
    recount: &Recount,
) -> TestReportState {
    let mut report = recorded.state.clone();
    report.requested_instances_count = if execution.execution.is_open {
        recorded.highest
    } else if has_ended(execution) && report.missing_result() == TestResult::NotExecuted {
        recount.finished_instances_count
    } else {
        report.requested_instances_count.max(recorded.highest)
    };
    let begun = if recorded.is_leased { ReportStatus::Running } else { ReportStatus::NotExecuted };
    report.published.set_status(begun);
    report.apply(recount);
    let (derived, stored) = (report.published.status(), recorded.state.published.status());
    let judgement = recorded.state.judgement.as_ref();
    let judged = judgement.and_then(|name| value_of::<ReportStatus>(name));
    if let Some(judged) = judged
        && !is_pending(derived)
        && derived != ReportStatus::Canceled
    {
        report.judgement = judgement.cloned();
        report.published.set_status(judged);
    }
    // Recording that an engine has leased it may have failed.
    if derived == ReportStatus::Running && stored == ReportStatus::NotExecuted && recorded.is_leased
    {
        report.published.set_status(stored);
    }
    report
}

fn has_ended(execution: &ExecutionState) -> bool {
    execution.execution.completion_date_time.is_some()
}

/// Returns the status of an execution, of whose reports some may have begun. One whose leases were all
/// released continues to run.
fn status(execution: &ExecutionState, has_begun: bool) -> ExecutionStatus {
    match (has_ended(execution), execution.is_canceled) {
        (true, true) => ExecutionStatus::Canceled,
        (true, false) => ExecutionStatus::Completed,
        (false, _) if has_begun || execution.mode() == ExecutionMode::External => {
            ExecutionStatus::Running
        }
        (false, _) => match execution.execution.status() {
            ExecutionStatus::Running => ExecutionStatus::Running,
            _ => ExecutionStatus::Queued,
        },
    }
}
