//! Changes: how the results of an execution differ from the history of their tests.
//!
//! A series are the executions of a test set with the same environment and branch. When an execution
//! is requested, the last ones that have ended, of its series and of that of the default branch, become
//! its baseline, so that what is new in it does not depend on others that run at the same time, and can
//! be derived again later. [`assay_judge`] decides.

mod baseline;
mod history;
pub mod replay;
mod store;

use std::collections::HashSet;

use assay_judge::{Change, History, Judgement, Outcome, Rule, judge};
use assay_proto::{CustomerId, ExecutionId, Fault, ResultChange, TestCaseId, TestResult};
use sqlx::PgTransaction;

use self::history::{Baseline, Histories};
pub use self::{
    baseline::{baseline, leave_out, rebase, series, shown},
    history::rule,
};
use crate::progress::{execution::ExecutionState, report::TestReportState};

/// How it is known whether a failure has the cause of an earlier one.
#[derive(Clone, Copy, PartialEq)]
enum Causes {
    /// Their fingerprints are compared. Those of earlier executions are removed later.
    Compared,
    /// The change of the report records it.
    Recorded,
}

/// Determines the changes of the reports of a locked execution that are about to be stored.
pub async fn determine(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    state: &ExecutionState,
    reports: &mut [TestReportState],
) -> Result<(), Fault> {
    let changed = reports.iter_mut().filter(|report| report.changed).collect();
    determine_of(tx, customer, state, changed, Causes::Compared).await
}

/// Determines the changes of all reports of an execution again.
pub async fn determine_all(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    state: &ExecutionState,
    reports: &mut [TestReportState],
) -> Result<(), Fault> {
    determine_of(tx, customer, state, reports.iter_mut().collect(), Causes::Recorded).await
}

async fn determine_of(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    state: &ExecutionState,
    mut changed: Vec<&mut TestReportState>,
    causes: Causes,
) -> Result<(), Fault> {
    let histories = histories(tx, customer, state, &changed).await?;
    let judgements = changed.iter().map(|report| judgement(report, state, &histories, true));
    let judgements: Vec<Judgement> = judgements.collect::<Result<_, _>>()?;
    let other = match causes {
        Causes::Recorded => recorded_as_other(&changed),
        Causes::Compared => {
            let still =
                |(_, judged): &(&&mut TestReportState, &Judgement)| judged.change == Change::Still;
            let still = changed.iter().zip(&judgements).filter(still);
            let still: Vec<String> = still.map(|(report, _)| report.published.id.clone()).collect();
            store::with_other_causes(tx, customer, state, &still).await?
        }
    };
    for (report, mut judged) in changed.iter_mut().zip(judgements) {
        if judged.change == Change::Still && other.contains(&report.published.id) {
            judged = judgement(report, state, &histories, false)?;
        }
        report.published.set_change(change(judged.change));
        report.change_reason = judged.reason;
    }
    Ok(())
}

/// Reads the histories of the tests that fail, and of those that passed although they did not always.
async fn histories(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    state: &ExecutionState,
    changed: &[&mut TestReportState],
) -> Result<Histories, Fault> {
    let (mut failing, mut passed) = (Vec::new(), Vec::new());
    for report in changed {
        match outcome(report) {
            Some(Outcome::Failed) => failing.push(case(report)?),
            Some(Outcome::Passed) => passed.push(case(report)?),
            Some(Outcome::PassedOnRetry) | None => {}
        }
    }
    let mut sought = store::with_changes(tx, customer, &state.baseline, &passed).await?;
    sought.extend(failing);
    if sought.is_empty() || state.baseline.is_empty() {
        return Ok(Histories::default());
    }
    let id = ExecutionId::from_record(&state.execution.id)?;
    let rule = rule_of(tx, customer, id).await?;
    let branch = state.execution.branch.as_deref().unwrap_or_default();
    let origins = store::origins(tx, customer, &state.baseline).await?;
    let results = store::results(tx, customer, &state.baseline, &sought).await?;
    Ok(Histories::new(rule, Baseline::of(branch, origins), results))
}

/// Returns the thresholds by which the results of an execution are judged.
pub async fn rule_of(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    id: ExecutionId,
) -> Result<Rule, Fault> {
    Ok(history::rule(&store::gate(tx, customer, id).await?))
}

/// Judges the result of a report, if it has one that can be judged.
fn judgement(
    report: &TestReportState,
    state: &ExecutionState,
    histories: &Histories,
    has_same_cause: bool,
) -> Result<Judgement, Fault> {
    let Some(outcome) = outcome(report) else {
        return Ok(Judgement { change: Change::None, reason: String::new() });
    };
    let commit = state.execution.commit.as_deref().unwrap_or_default();
    let judge =
        |history: &History<'_>| judge(outcome, commit, has_same_cause, history, histories.rule());
    Ok(histories.with(case(report)?, judge))
}

fn outcome(report: &TestReportState) -> Option<Outcome> {
    match report.ended_result()? {
        TestResult::Failed | TestResult::Error => Some(Outcome::Failed),
        TestResult::Passed if report.is_flaky => Some(Outcome::PassedOnRetry),
        TestResult::Passed => Some(Outcome::Passed),
        _ => None,
    }
}

fn case(report: &TestReportState) -> Result<TestCaseId, Fault> {
    TestCaseId::from_record(&report.published.test_case_id)
}

/// Returns the reports that were stored with another cause than before.
fn recorded_as_other(reports: &[&mut TestReportState]) -> HashSet<String> {
    let other = reports.iter().filter(|one| one.published.change() == ResultChange::CauseChanged);
    other.map(|report| report.published.id.clone()).collect()
}

fn change(change: Change) -> ResultChange {
    match change {
        Change::None => ResultChange::None,
        Change::New => ResultChange::New,
        Change::Still => ResultChange::Still,
        Change::CauseChanged => ResultChange::CauseChanged,
        Change::Fixed => ResultChange::Fixed,
        Change::Flaky => ResultChange::Flaky,
    }
}
