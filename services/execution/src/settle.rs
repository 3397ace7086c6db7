//! The consequences of results for an execution: its counts, its status, its schedules and the
//! events. The row of the execution is locked.

pub(crate) mod events;

use assay_events::ExecutionAction;
use assay_proto::{CustomerId, ExecutionId, ExecutionStatus, Fault, events::ReportState};
use sqlx::PgTransaction;

use self::events::announce;
use crate::{
    execution::{rules, store},
    instance, lease,
    progress::{
        execution::ExecutionState,
        instance::NewInstance,
        report::{Ending, TestReportState},
    },
    schedule, test_report,
};

/// Adds instances to reports of a locked execution, all or none, and returns the number of new
/// ones. Instances that are stored already change nothing.
pub(crate) async fn add_instances(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    state: &mut ExecutionState,
    reports: &mut [TestReportState],
    mut instances: Vec<NewInstance>,
) -> Result<usize, Fault> {
    let added = instance::store::insert(tx, customer, reports, &instances).await?;
    instances.retain(|instance| added.contains(&instance.id));
    if instances.is_empty() {
        return Ok(0);
    }
    if state.has_ended() {
        return Err(rules::ended("the execution has ended; it accepts no new results"));
    }
    instance::store::insert_details(tx, customer, reports, &instances).await?;
    let finished = count_instances(state, reports, &instances)?;
    test_report::store::save(tx, customer, reports).await?;
    let finished = finished.into_iter().map(|report| reports[report].published.clone()).collect();
    settle(tx, customer, state, finished).await?;
    Ok(instances.len())
}

/// Adds instances to the state of their reports and of the execution. Returns the indexes of the
/// reports that end with them.
fn count_instances(
    state: &mut ExecutionState,
    reports: &mut [TestReportState],
    instances: &[NewInstance],
) -> Result<Vec<usize>, Fault> {
    let mut finished = Vec::new();
    for instance in instances {
        let report = &mut reports[instance.report];
        report.add(&instance.outcome)?;
        state.add(&instance.outcome);
        if !report.is_pending() {
            state.end_report(report.result());
            finished.push(instance.report);
        }
    }
    Ok(finished)
}

/// Stores and publishes the state of an execution after these reports have ended. A failure may
/// cancel the tests that have not started, and the last report completes an execution that engines
/// run.
pub(crate) async fn settle(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    state: &mut ExecutionState,
    mut finished: Vec<ReportState>,
) -> Result<(), Fault> {
    let id = ExecutionId::from_record(&state.execution.id)?;
    if state.execution.status() == ExecutionStatus::Queued {
        state.execution.set_status(ExecutionStatus::Running);
    }
    if state.is_dispatched() {
        schedule::store::complete(tx, customer, &finished).await?;
    }
    if state.is_stopping() {
        let mut reports = not_started(tx, customer, state, id).await?;
        finished.extend(end_reports(tx, customer, state, &mut reports, Ending::Canceled).await?);
    }
    let mut action = ExecutionAction::Progressed;
    if state.is_dispatched() && state.statistic.test_cases_pending == 0 {
        state.complete();
        action = ExecutionAction::Completed;
    }
    store::save(tx, customer, state).await?;
    announce(tx, customer, state, action, &finished).await
}

/// Returns the pending reports that no engine has begun, and cancels their schedules. Without
/// engines, returns those that have no instances.
async fn not_started(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    state: &ExecutionState,
    id: ExecutionId,
) -> Result<Vec<TestReportState>, Fault> {
    if state.is_dispatched() {
        let canceled = schedule::store::cancel_queued(tx, customer, id).await?;
        return test_report::store::of_ids(tx, customer, &canceled).await;
    }
    let mut pending = test_report::store::pending(tx, customer, id).await?;
    pending.retain(|report| report.finished_instances_count == 0);
    Ok(pending)
}

/// Ends pending reports without their missing instances.
pub(crate) async fn end_reports(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    state: &mut ExecutionState,
    reports: &mut [TestReportState],
    ending: Ending,
) -> Result<Vec<ReportState>, Fault> {
    for report in &mut *reports {
        report.end(ending);
        state.end_report(report.result());
    }
    test_report::store::save(tx, customer, reports).await?;
    Ok(reports.iter().map(|report| report.published.clone()).collect())
}

/// Ends an execution with all its pending reports. Engines learn it when they next renew a lease.
pub(crate) async fn end_execution(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    state: &mut ExecutionState,
    ending: Ending,
) -> Result<(), Fault> {
    let id = ExecutionId::from_record(&state.execution.id)?;
    if state.is_dispatched() {
        schedule::store::cancel_all(tx, customer, id).await?;
        lease::store::cancel_all(tx, customer, id).await?;
    }
    let mut reports = test_report::store::pending(tx, customer, id).await?;
    let finished = end_reports(tx, customer, state, &mut reports, ending).await?;
    let action = if ending == Ending::Canceled {
        state.cancel();
        ExecutionAction::Canceled
    } else {
        state.complete();
        ExecutionAction::Completed
    };
    store::save(tx, customer, state).await?;
    announce(tx, customer, state, action, &finished).await
}

/// Marks a queued execution as running.
pub(crate) async fn mark_running(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    state: &mut ExecutionState,
) -> Result<(), Fault> {
    if state.execution.status() == ExecutionStatus::Queued {
        state.execution.set_status(ExecutionStatus::Running);
        store::save(tx, customer, state).await?;
        announce(tx, customer, state, ExecutionAction::Progressed, &[]).await?;
    }
    Ok(())
}
