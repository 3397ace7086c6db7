//! Gates of test sets, and what others would have decided.

use serde::Deserialize;

use super::{execution::Rule, name::VerdictState, time::Time};

/// The rules for the verdict of executions.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Gate {
    pub(crate) max_new_failures: i32,
    pub(crate) allow_known_failures: bool,
    pub(crate) max_flaky_tests: Option<i32>,
    pub(crate) min_pass_rate: Option<f64>,
    pub(crate) required_test_cases: Vec<String>,
    pub(crate) flaky_after_breaks: Option<i32>,
    pub(crate) longest_flaky_break: Option<i32>,
    pub(crate) flaky_within_runs: Option<i32>,
}

/// Verdicts of executions by another gate.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Backtest {
    pub(crate) executions: i64,
    pub(crate) passed: i64,
    pub(crate) blocked: i64,
    pub(crate) let_through: i64,
    pub(crate) differences: Vec<BacktestDifference>,
    pub(crate) next_cursor: Option<String>,
}

/// An execution with another verdict.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct BacktestDifference {
    pub(crate) execution_id: String,
    pub(crate) request_time: Time,
    pub(crate) branch: Option<String>,
    pub(crate) environment_name: Option<String>,
    pub(crate) replayed: VerdictState,
    pub(crate) rules: Vec<Rule>,
}
