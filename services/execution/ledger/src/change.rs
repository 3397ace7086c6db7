//! Changes: how the results of an execution differ from those of its series before.
//!
//! A series are the executions of a test set with the same environment and branch. When an execution
//! is requested, the last ones that have ended become its baseline, so that what is new in it does
//! not depend on others that run at the same time. A test case that some of them did not run is
//! compared with its last result among them.

mod store;

use std::collections::HashMap;

use assay_proto::{CustomerId, Fault, ResultChange, TestCaseId, TestResult};
use sqlx::PgTransaction;

pub use self::store::baseline;
use crate::progress::{execution::ExecutionState, report::TestReportState};

/// Determines the changes of the reports of a locked execution that are about to be stored.
pub async fn determine(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    state: &ExecutionState,
    reports: &mut [TestReportState],
) -> Result<(), Fault> {
    let changed = reports.iter_mut().filter(|report| report.changed).collect();
    determine_of(tx, customer, state, changed).await
}

/// Determines the changes of all reports of an execution.
pub async fn determine_all(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    state: &ExecutionState,
    reports: &mut [TestReportState],
) -> Result<(), Fault> {
    determine_of(tx, customer, state, reports.iter_mut().collect()).await
}

async fn determine_of(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    state: &ExecutionState,
    mut changed: Vec<&mut TestReportState>,
) -> Result<(), Fault> {
    let (mut failing, mut passed) = (Vec::new(), Vec::new());
    for report in &changed {
        let case = TestCaseId::from_record(&report.published.test_case_id)?;
        match report.ended_result() {
            Some(TestResult::Failed | TestResult::Error) => failing.push(case),
            Some(TestResult::Passed) if !report.is_flaky => passed.push(case),
            _ => {}
        }
    }
    let mut sought = store::failed_before(tx, customer, &state.baseline, &passed).await?;
    sought.extend(failing);
    let before = last_results(tx, customer, state, sought).await?;
    for report in &mut changed {
        let failed_before =
            before.get(&report.published.test_case_id).is_some_and(|result| result.is_failure());
        report.published.set_change(change(report, failed_before));
    }
    Ok(())
}

fn change(report: &TestReportState, failed_before: bool) -> ResultChange {
    match report.ended_result() {
        Some(TestResult::Failed | TestResult::Error) if failed_before => ResultChange::Still,
        Some(TestResult::Failed | TestResult::Error) => ResultChange::New,
        Some(TestResult::Passed) if report.is_flaky => ResultChange::Flaky,
        Some(TestResult::Passed) if failed_before => ResultChange::Fixed,
        _ => ResultChange::None,
    }
}

/// Returns the last results of test cases in the baseline, by the ids of the test cases.
async fn last_results(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    state: &ExecutionState,
    mut sought: Vec<TestCaseId>,
) -> Result<HashMap<String, TestResult>, Fault> {
    let mut results = HashMap::new();
    // Most test cases are found in the first one.
    for execution in &state.baseline {
        if sought.is_empty() {
            break;
        }
        for (case, result) in store::results(tx, customer, *execution, &sought).await? {
            results.insert(case.to_string(), result);
        }
        sought.retain(|case| !results.contains_key(&case.to_string()));
    }
    Ok(results)
}
