//! The consequences of results for an execution: its counts, its status, its schedules and the
//! events.
//!
//! Results that are added to a stored execution go through this module, under the lock of the row of the
//! execution. The lock is the only one: reports, instances and failures are written by its holder alone, so counts
//! can be changed by differences, and a revision is published once. The order of the statements is instances,
//! failures, change, mutes, reports, execution, events, since each depends on those before it. All are in
//! the transaction of the caller: a crash before its commit leaves nothing.
//!
//! Two writers stand beside it. An upload creates its execution complete, so nobody else sees the rows before the
//! commit: it inserts the execution first, to which the others refer, and the reports when they have been judged.
//! A review changes a report that has ended, under the same lock.

pub mod events;
mod first_failure;
pub mod skip;

use std::collections::HashMap;

use assay_events::ExecutionAction;
use assay_proto::{
    CustomerId, ExecutionId, ExecutionStatus, Fault, TestResult, events::ReportState,
};
use sqlx::PgTransaction;

use self::{events::announce, skip::end_skipped};
use crate::{
    change,
    column::column,
    execution::{rules, store},
    failure,
    instance::{self, attempts},
    lease, mute,
    progress::{
        execution::ExecutionState,
        instance::NewInstance,
        merge::{AssignedResult, MOST_INSTANCES, Merged, classify, merge},
        report::{Ending, TestReportState},
    },
    schedule, test_report,
};

/// Adds results to reports of a locked execution, all or none, and returns the number of new ones.
/// Results that are stored already change nothing. If `continue_attempts`, the results are further
/// attempts at instances that are stored.
pub async fn add_results(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    state: &mut ExecutionState,
    reports: &mut [TestReportState],
    results: Vec<AssignedResult>,
    continue_attempts: bool,
) -> Result<usize, Fault> {
    let is_open = state.execution.is_open;
    let stored = attempts::stored(tx, customer, is_open, reports, &results).await?;
    let mut highest: Vec<i32> =
        reports.iter().map(|report| report.requested_instances_count).collect();
    classify(reports, &results);
    let merged = merge(results, stored, &mut highest, continue_attempts);
    if merged.accepted == 0 {
        return Ok(0);
    }
    if state.has_ended() {
        return Err(rules::no_new_results());
    }
    if is_open {
        expect_instances(state, reports, &highest)?;
    }
    store_instances(tx, customer, state, reports, &merged).await?;
    let mut finished = count_instances(state, reports, &merged)?;
    finished.extend(recount_reports(tx, customer, state, reports, &merged).await?);
    finished.sort_unstable();
    finished.dedup();
    save_reports(tx, customer, state, reports).await?;
    if !merged.retried.is_empty() {
        let id = ExecutionId::from_record(&state.execution.id)?;
        state.recount(&test_report::store::totals(tx, customer, id).await?);
    }
    let finished = finished.into_iter().map(|report| reports[report].published.clone()).collect();
    settle(tx, customer, state, finished).await?;
    Ok(merged.accepted)
}

/// Stores the changed reports, with how they differ from those before and whether they are muted.
async fn save_reports(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    state: &ExecutionState,
    reports: &mut [TestReportState],
) -> Result<(), Fault> {
    change::determine(tx, customer, state, reports).await?;
    mute::mute(tx, customer, state, reports).await?;
    test_report::store::save(tx, customer, reports).await
}

async fn store_instances(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    state: &ExecutionState,
    reports: &[TestReportState],
    merged: &Merged,
) -> Result<(), Fault> {
    let Merged { expected, added, announced, retried, late, .. } = merged;
    let new: Vec<_> = expected.iter().chain(added).collect();
    instance::store::insert(tx, customer, reports, &new).await?;
    let replaced: Vec<_> = announced.iter().chain(retried).collect();
    attempts::replace(tx, customer, reports, &replaced).await?;
    let decisive = added.iter().chain(announced).chain(retried);
    attempts::insert(tx, customer, reports, decisive.clone(), false).await?;
    failure::store::delete(tx, customer, reports, retried).await?;
    failure::store::insert(tx, customer, state, reports, decisive).await?;
    attempts::insert(tx, customer, reports, late.iter(), true).await
}

/// Lets the reports of an open execution expect instances up to the highest numbers.
pub fn expect_instances(
    state: &mut ExecutionState,
    reports: &mut [TestReportState],
    highest: &[i32],
) -> Result<(), Fault> {
    for (report, highest) in reports.iter_mut().zip(highest) {
        if *highest > MOST_INSTANCES {
            let case = report.test_case_identifier();
            let reason = format!("{case} has more than {MOST_INSTANCES} instances");
            return Err(Fault::Refused { code: "too_many_instances", reason });
        }
        let (was_pending, result) = (report.is_pending(), report.result());
        report.expect(*highest);
        if !was_pending && report.is_pending() {
            state.reopen_report(result);
        }
    }
    Ok(())
}

/// Adds instances that have finished to the state of their reports and of the execution. Returns
/// the indexes of the reports that end with them.
pub fn count_instances(
    state: &mut ExecutionState,
    reports: &mut [TestReportState],
    merged: &Merged,
) -> Result<Vec<usize>, Fault> {
    let mut finished = Vec::new();
    for instance in merged.added.iter().chain(&merged.announced) {
        let report = &mut reports[instance.report];
        report.add(instance)?;
        state.add(&instance.last.outcome, report.result());
        if !report.is_pending() {
            state.end_report(report.result());
            finished.push(instance.report);
        }
    }
    Ok(finished)
}

/// Applies the last attempts of instances that had finished before. Returns the indexes of the
/// ended reports that changed.
async fn recount_reports(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    state: &mut ExecutionState,
    reports: &mut [TestReportState],
    merged: &Merged,
) -> Result<Vec<usize>, Fault> {
    // An attempt that passed in front of the last one may show that a test is not flaky.
    let has_passed = |late: &&NewInstance| late.last.outcome.result == TestResult::Passed;
    let instances = merged.retried.iter().chain(merged.late.iter().filter(has_passed));
    let mut changed: Vec<usize> = instances.map(|instance| instance.report).collect();
    if changed.is_empty() {
        return Ok(changed);
    }
    changed.sort_unstable();
    changed.dedup();
    let ids = column(&changed, |report| reports[*report].published.id.as_str());
    let recounts = test_report::store::recount(tx, customer, &ids).await?;
    for index in &changed {
        let report = &mut reports[*index];
        let Some(recount) = recounts.get(&report.published.id) else { continue };
        let before = report.result();
        report.recount(recount);
        if !report.is_pending() {
            state.reopen_report(before);
            state.end_report(report.result());
        }
    }
    changed.retain(|report| !reports[*report].is_pending());
    Ok(changed)
}

/// Stores and publishes the state of an execution after these reports have ended. A failure may
/// cancel the tests that have not started, and the last report completes an execution that engines
/// run.
pub async fn settle(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    state: &mut ExecutionState,
    mut finished: Vec<ReportState>,
) -> Result<(), Fault> {
    let id = ExecutionId::from_record(&state.execution.id)?;
    if state.execution.status() == ExecutionStatus::Queued {
        state.execution.set_status(ExecutionStatus::Running);
    }
    if state.is_unsure() {
        state.recount(&test_report::store::totals(tx, customer, id).await?);
    }
    if state.is_dispatched() {
        schedule::store::complete(tx, customer, &finished).await?;
    }
    if state.is_stopping() {
        let mut reports = not_started(tx, customer, state, id).await?;
        finished.extend(end_reports(tx, customer, state, &mut reports, Ending::Stopped).await?);
    }
    let mut action = ExecutionAction::Progressed;
    if state.is_dispatched() && state.statistic.test_cases_pending == 0 {
        state.complete();
        action = ExecutionAction::Completed;
    }
    first_failure::find(tx, customer, state, &finished).await?;
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
pub async fn end_reports(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    state: &mut ExecutionState,
    reports: &mut [TestReportState],
    ending: Ending<'_>,
) -> Result<Vec<ReportState>, Fault> {
    if state.execution.is_open {
        end_announced(tx, customer, reports, ending).await?;
    }
    for report in &mut *reports {
        report.end(ending);
        state.end_report(report.result());
        state.unreached.stopped_test_cases += i32::from(ending == Ending::Stopped);
    }
    failure::store::insert_of_engines(tx, customer, state, reports).await?;
    save_reports(tx, customer, state, reports).await?;
    Ok(reports.iter().map(|report| report.published.clone()).collect())
}

/// Ends the announced instances of pending reports.
async fn end_announced(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    reports: &mut [TestReportState],
    ending: Ending<'_>,
) -> Result<(), Fault> {
    let ids = column(reports, |report| report.published.id.as_str());
    let ended = attempts::end_announced(tx, customer, &ids, ending.result()).await?;
    let mut counts = HashMap::<String, i32>::new();
    for report in ended {
        *counts.entry(report.to_string()).or_default() += 1;
    }
    for report in reports {
        if let Some(count) = counts.get(&report.published.id) {
            report.end_announced(*count);
        }
    }
    Ok(())
}

/// Ends an execution with all its pending reports. Engines learn it when they next renew a lease.
pub async fn end_execution(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    state: &mut ExecutionState,
    ending: Ending<'_>,
) -> Result<(), Fault> {
    let id = ExecutionId::from_record(&state.execution.id)?;
    if state.is_dispatched() {
        schedule::store::cancel_all(tx, customer, id).await?;
        lease::store::cancel_all(tx, customer, id).await?;
    }
    let mut reports = test_report::store::pending(tx, customer, id).await?;
    let mut finished = Vec::new();
    if ending == Ending::Aborted {
        finished.extend(end_skipped(tx, customer, state, &mut reports).await?);
    }
    finished.extend(end_reports(tx, customer, state, &mut reports, ending).await?);
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
pub async fn mark_running(
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
