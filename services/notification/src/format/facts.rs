//! The facts of a notification that messages show.

use assay_proto::{Fault, notification::Notification};
use serde::Deserialize;

/// A notification. Fields that do not apply are absent, empty or zero.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(super) struct Facts {
    pub(super) source: String,
    pub(super) source_id: String,
    pub(super) target: String,
    pub(super) target_id: Option<String>,
    pub(super) action: String,
    pub(super) origin: String,
    pub(super) test_set_id: Option<String>,
    pub(super) test_set_name: Option<String>,
    pub(super) execution_id: Option<String>,
    pub(super) test_case_id: Option<String>,
    pub(super) test_case_identifier: Option<String>,
    pub(super) result: Option<String>,
    pub(super) change: Option<String>,
    pub(super) statistic: Option<Statistic>,
    pub(super) changes: Option<Changes>,
    pub(super) verdict: Option<String>,
    pub(super) rules: Vec<Rule>,
    pub(super) failed_test_cases: Vec<FailedTestCase>,
    pub(super) branch: Option<String>,
    pub(super) commit: Option<String>,
    pub(super) build: Option<String>,
    pub(super) ci_url: Option<String>,
    pub(super) url: Option<String>,
    pub(super) actor: Option<Actor>,
}

/// Numbers of test cases by their results.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(super) struct Statistic {
    pub(super) environment_id: String,
    pub(super) environment_name: String,
    pub(super) software_name: String,
    pub(super) software_version: String,
    pub(super) test_cases_total: i32,
    pub(super) test_cases_canceled: i32,
    pub(super) test_cases_aborted: i32,
    pub(super) test_cases_with_error: i32,
    pub(super) test_cases_passed: i32,
    pub(super) test_cases_failed: i32,
}

/// Numbers of test cases by the changes of their results.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(super) struct Changes {
    pub(super) new: i32,
    pub(super) fixed: i32,
    pub(super) flaky: i32,
    pub(super) muted: i32,
    pub(super) cause_changed: i32,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(super) struct Rule {
    pub(super) is_met: bool,
    pub(super) message: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(super) struct FailedTestCase {
    pub(super) identifier: String,
    pub(super) name: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(super) struct Actor {
    pub(super) name: String,
}

impl Facts {
    pub(super) fn of(notification: &Notification) -> Result<Self, Fault> {
        let json = serde_json::to_value(notification).map_err(Fault::internal)?;
        serde_json::from_value(json).map_err(Fault::internal)
    }

    /// Returns whether a client has created the notification, and chosen its words. It never looks like one
    /// of Assay.
    pub(super) fn is_of_client(&self) -> bool {
        self.origin == "Client"
    }

    /// Returns whether the notification is the end of an execution.
    pub(super) fn is_end(&self) -> bool {
        let is_end = matches!(self.action.as_str(), "Completed" | "Canceled");
        self.target == "Execution" && is_end && !self.is_of_client()
    }

    /// Returns whether the notification is the end of a test case in an execution.
    pub(super) fn is_report(&self) -> bool {
        self.target == "TestReport" && self.action == "Finished" && !self.is_of_client()
    }

    /// Returns whether the notification is about an execution itself, such as its verdict.
    pub(super) fn is_about_execution(&self) -> bool {
        self.source == "Execution" && self.target == "TestSet" && !self.is_of_client()
    }
}
