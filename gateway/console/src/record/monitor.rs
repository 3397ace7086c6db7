//! Monitors and their actions.

use serde::Deserialize;

use super::time::Time;

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Monitor {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) measure: String,
    pub(crate) runs: i64,
    pub(crate) threshold: f64,
    /// Empty for the default branch.
    pub(crate) branch: String,
    pub(crate) action: String,
    pub(crate) recover_after: i64,
    pub(crate) dry_run: bool,
    pub(crate) created_by: String,
    pub(crate) created_at: Time,
    pub(crate) data_version: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct MonitorAction {
    pub(crate) time: Time,
    pub(crate) test_case_id: String,
    pub(crate) test_case_identifier: String,
    pub(crate) test_case_name: String,
    pub(crate) execution_id: String,
    pub(crate) action: String,
    pub(crate) reason: String,
    pub(crate) is_dry: bool,
}

impl MonitorAction {
    /// Returns the CSS class and the label of the action.
    pub(crate) fn label(&self) -> (&'static str, &'static str) {
        match (self.action.as_str(), self.is_dry) {
            ("Skipped", false) => ("flaky", "Skipped"),
            ("Skipped", true) => ("none", "Would have skipped"),
            ("Notified", false) => ("flaky", "Notified"),
            ("Notified", true) => ("none", "Would have notified"),
            ("Recovered", false) => ("pass", "Recovered"),
            ("Recovered", true) => ("none", "Recovered (dry run)"),
            ("Broken", false) => ("fail", "Broken"),
            ("Broken", true) => ("none", "Broken (dry run)"),
            (_, false) => ("flaky", "Muted"),
            (_, true) => ("none", "Would have muted"),
        }
    }
}
