//! Results of test cases in several executions.

use serde::Deserialize;

use super::{name::ReportStatus, outcome::Outcome, time::Time};

/// A result of a test case.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct TestCaseRun {
    pub(crate) id: String,
    pub(crate) execution_id: String,
    pub(crate) request_time: Time,
    pub(crate) result: Outcome,
    pub(crate) status: ReportStatus,
    pub(crate) total_duration_in_sec: f64,
    pub(crate) software_name: Option<String>,
    pub(crate) software_version: Option<String>,
    pub(crate) environment_id: Option<String>,
    pub(crate) environment_name: Option<String>,
    pub(crate) flakiness_score: f64,
    pub(crate) is_flaky: bool,
    pub(crate) branch: Option<String>,
    pub(crate) test_set_name: String,
    pub(crate) commit: Option<String>,
    pub(crate) fingerprint: Option<String>,
    pub(crate) headline: Option<String>,
}

impl TestCaseRun {
    pub(crate) fn failed(&self) -> bool {
        self.result.is_failure()
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Grid {
    pub(crate) executions: Vec<GridExecution>,
    pub(crate) cases: Vec<GridCase>,
    pub(crate) next_cursor: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct GridExecution {
    pub(crate) id: String,
    pub(crate) request_time: Time,
    pub(crate) result: Outcome,
    pub(crate) branch: Option<String>,
    pub(crate) commit: Option<String>,
    pub(crate) environment_name: Option<String>,
    pub(crate) failures: i64,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct GridFailure {
    pub(crate) execution_id: String,
    pub(crate) test_report_id: String,
    pub(crate) headline: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct GridCase {
    pub(crate) test_case_id: String,
    pub(crate) test_case_identifier: String,
    pub(crate) test_case_name: String,
    pub(crate) suites: Vec<String>,
    pub(crate) outcomes: String,
    pub(crate) failures: Vec<GridFailure>,
}

impl GridCase {
    /// Returns whether the test passed in all executions of the grid.
    pub(crate) fn is_green(&self) -> bool {
        let mut outcomes = self.outcomes.chars().map(Outcome::of_letter);
        !self.outcomes.is_empty() && outcomes.all(|outcome| outcome == Outcome::Passed)
    }
}

/// A test case that has another result in another execution.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Difference {
    pub(crate) test_case_id: String,
    pub(crate) test_case_identifier: String,
    pub(crate) test_case_name: String,
    pub(crate) result: Outcome,
    pub(crate) other_result: Outcome,
}

/// A test case that needs attention.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Insight {
    pub(crate) test_case_id: String,
    pub(crate) test_case_identifier: String,
    pub(crate) test_case_name: String,
    pub(crate) runs: i64,
    pub(crate) failures: i64,
    pub(crate) flaky_runs: i64,
    pub(crate) recoveries: i64,
    pub(crate) average_duration_in_sec: f64,
    pub(crate) last_execution_id: String,
    pub(crate) last_run: Time,
    pub(crate) outcomes: String,
    pub(crate) since_execution_id: Option<String>,
    pub(crate) since: Option<Time>,
    pub(crate) since_commit: Option<String>,
    pub(crate) commit_before: Option<String>,
    pub(crate) duration_before_in_sec: Option<f64>,
    pub(crate) duration_since_in_sec: Option<f64>,
}
