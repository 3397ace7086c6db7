//! What follows for an execution from what has become of its reports. Its row is locked.

use assay_proto::{
    CustomerId, ExecutionId, ExecutionStatus, Fault, TestReportId, events::ReportState,
};
use sqlx::PgTransaction;

use super::{Run, announce, store};
use crate::{
    lease, schedule,
    test_report::{self, Ending, Progress},
};

/// Writes down how far an execution has come by the ends of these reports, which are written down
/// already, and tells others: a failure may end what has not started, and the last report ends an
/// execution that engines run.
pub(crate) async fn settle(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    run: &mut Run,
    mut finished: Vec<ReportState>,
) -> Result<(), Fault> {
    let id = ExecutionId::from_record(&run.execution.id)?;
    if run.execution.status() == ExecutionStatus::Queued {
        run.execution.set_status(ExecutionStatus::Running);
    }
    if run.is_dispatched() {
        schedule::store::complete(tx, customer, &finished).await?;
    }
    if run.is_stopping() {
        let mut reports = not_started(tx, customer, run, id).await?;
        finished.extend(end(tx, customer, run, &mut reports, Ending::Canceled).await?);
    }
    let mut action = "Progressed";
    if run.is_dispatched() && run.statistic.test_cases_pending == 0 {
        run.complete();
        action = "Completed";
    }
    store::save(tx, customer, run).await?;
    announce(tx, customer, run, action, &finished).await
}

/// Takes what no engine has taken off the queue, and says whose reports that are; without engines,
/// those that nothing was reported of.
async fn not_started(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    run: &Run,
    id: ExecutionId,
) -> Result<Vec<Progress>, Fault> {
    if run.is_dispatched() {
        let canceled = schedule::store::cancel_queued(tx, customer, id).await?;
        return test_report::store::of_ids(tx, customer, &canceled).await;
    }
    let mut pending = test_report::store::pending(tx, customer, id).await?;
    pending.retain(|report| report.finished_instances_count == 0);
    Ok(pending)
}

/// Ends pending reports without their missing instances.
pub(crate) async fn end(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    run: &mut Run,
    reports: &mut [Progress],
    ending: Ending,
) -> Result<Vec<ReportState>, Fault> {
    for report in &mut *reports {
        report.end(ending);
        run.end_report(report.result());
    }
    test_report::store::save(tx, customer, reports).await?;
    Ok(reports.iter().map(|report| report.state.clone()).collect())
}

/// Ends an execution whatever has not finished in it. Engines learn it at their next heartbeat.
pub(crate) async fn finish(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    run: &mut Run,
    ending: Ending,
) -> Result<(), Fault> {
    let id = ExecutionId::from_record(&run.execution.id)?;
    if run.is_dispatched() {
        schedule::store::cancel_all(tx, customer, id).await?;
        lease::store::cancel_all(tx, customer, id).await?;
    }
    let mut reports = test_report::store::pending(tx, customer, id).await?;
    let finished = end(tx, customer, run, &mut reports, ending).await?;
    let action = if ending == Ending::Canceled {
        run.cancel();
        "Canceled"
    } else {
        run.complete();
        "Completed"
    };
    store::save(tx, customer, run).await?;
    announce(tx, customer, run, action, &finished).await
}

/// Notes that an engine has begun with an execution.
pub(crate) async fn mark_running(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    run: &mut Run,
) -> Result<(), Fault> {
    if run.execution.status() == ExecutionStatus::Queued {
        run.execution.set_status(ExecutionStatus::Running);
        store::save(tx, customer, run).await?;
        announce(tx, customer, run, "Progressed", &[]).await?;
    }
    Ok(())
}

/// The ids of reports, as columns have them.
pub(crate) fn ids_of(reports: &[ReportState]) -> Result<Vec<TestReportId>, Fault> {
    reports.iter().map(|report| TestReportId::from_record(&report.id)).collect()
}
