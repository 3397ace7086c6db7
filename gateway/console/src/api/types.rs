//! The records of the interface, as far as pages show them.

mod execution;
mod outcome;
mod report;

use chrono::{DateTime, Utc};
use serde::Deserialize;

pub(crate) use self::{execution::*, outcome::Outcome, report::*};

pub(crate) type Time = DateTime<Utc>;

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Project {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) description: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct TestSetEntry {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) last_execution_statistic: Option<Statistic>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct TestSet {
    pub(crate) name: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct TestCase {
    pub(crate) id: String,
    pub(crate) project_id: String,
    pub(crate) name: String,
    pub(crate) identifier: String,
    pub(crate) description: Option<String>,
}

/// A result of a test case.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct TestCaseRun {
    pub(crate) id: String,
    pub(crate) request_time: Time,
    pub(crate) result: Outcome,
    pub(crate) status: String,
    pub(crate) total_duration_in_sec: f64,
    pub(crate) software_name: Option<String>,
    pub(crate) software_version: Option<String>,
    pub(crate) environment_name: Option<String>,
    pub(crate) flakiness_score: f64,
    pub(crate) is_flaky: bool,
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
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct GridCase {
    pub(crate) test_case_id: String,
    pub(crate) test_case_identifier: String,
    pub(crate) test_case_name: String,
    pub(crate) outcomes: String,
}
