//! Executions and their causes of failures.

use serde::Deserialize;

use super::{
    name::{ExecutionStatus, VerdictState},
    outcome::Outcome,
    report::ReportEntry,
    time::Time,
};

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct ExecutionEntry {
    pub(crate) id: String,
    pub(crate) test_set_id: String,
    pub(crate) test_set_name: String,
    pub(crate) software_name: Option<String>,
    pub(crate) software_version: Option<String>,
    pub(crate) environment_id: Option<String>,
    pub(crate) environment_name: Option<String>,
    pub(crate) request_user: String,
    pub(crate) request_time: Time,
    pub(crate) tags: String,
    pub(crate) result: Outcome,
    pub(crate) branch: Option<String>,
    pub(crate) commit: Option<String>,
    pub(crate) build: Option<String>,
    pub(crate) ci_url: Option<String>,
    pub(crate) status: ExecutionStatus,
    pub(crate) statistic: Statistic,
    pub(crate) duration_in_sec: f64,
}

impl ExecutionEntry {
    pub(crate) fn is_running(&self) -> bool {
        self.status.is_running()
    }

    /// Returns the time since which it has been running, if it has not ended.
    pub(crate) fn running_since(&self) -> Option<Time> {
        self.is_running().then_some(self.request_time)
    }
}

/// Numbers of test cases by their results.
#[derive(Clone, Copy, Default, Deserialize)]
pub(crate) struct Statistic {
    #[serde(rename = "TestCasesTotal")]
    pub(crate) total: i64,
    #[serde(rename = "TestCasesPassed")]
    pub(crate) passed: i64,
    #[serde(rename = "TestCasesFailed")]
    pub(crate) failed: i64,
    #[serde(rename = "TestCasesWithError")]
    pub(crate) errors: i64,
    #[serde(rename = "TestCasesAborted")]
    pub(crate) aborted: i64,
    #[serde(rename = "TestCasesCanceled")]
    pub(crate) canceled: i64,
    #[serde(rename = "TestCasesPending")]
    pub(crate) pending: i64,
}

impl Statistic {
    /// Returns the number of test cases that failed or had an error.
    pub(crate) fn failures(&self) -> i64 {
        self.failed + self.errors
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Summary {
    pub(crate) execution: ExecutionEntry,
    pub(crate) project_id: String,
    pub(crate) changes: Changes,
    pub(crate) compared_with: Option<String>,
    pub(crate) incident_id: Option<String>,
    pub(crate) notes: Vec<String>,
}

/// Numbers of test cases by their changes.
#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Changes {
    pub(crate) new: i64,
    pub(crate) still: i64,
    #[serde(default)]
    pub(crate) cause_changed: i64,
    pub(crate) fixed: i64,
    pub(crate) flaky: i64,
    pub(crate) muted: i64,
    pub(crate) unreviewed: i64,
    #[serde(default)]
    pub(crate) muted_new: i64,
    #[serde(default)]
    pub(crate) muted_still: i64,
    #[serde(default)]
    pub(crate) muted_flaky: i64,
    #[serde(default)]
    pub(crate) muted_cause_changed: i64,
}

impl Changes {
    /// Returns the number of failures that the gate counts as new.
    pub(crate) fn new_failures(self) -> i64 {
        self.new - self.muted_new + self.cause_changed - self.muted_cause_changed
    }
}

/// A cause of failures.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Cause {
    pub(crate) fingerprint: String,
    pub(crate) headline: String,
    pub(crate) count: i64,
    pub(crate) variants: i64,
    /// 0 for readers of a share link.
    #[serde(default)]
    pub(crate) unreviewed: i64,
    /// Version of its judgements; empty for readers of a share link.
    #[serde(default)]
    pub(crate) data_version: String,
    /// Empty for readers of a share link, as those without a value are.
    #[serde(default)]
    pub(crate) first_execution_id: String,
    pub(crate) first_seen: Option<Time>,
    pub(crate) reports: Vec<ReportEntry>,
}

/// Whether an execution meets the rules of its test set.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Verdict {
    pub(crate) state: VerdictState,
    pub(crate) rules: Vec<Rule>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Rule {
    pub(crate) is_met: bool,
    pub(crate) message: String,
}
