//! Monitors and their actions.

use serde::Deserialize;

use super::{
    name::{AlarmAction, MonitorActionKind, MonitorMeasure},
    time::Time,
};

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Monitor {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) measure: MonitorMeasure,
    pub(crate) runs: i64,
    pub(crate) threshold: f64,
    /// Empty for the default branch.
    pub(crate) branch: String,
    pub(crate) action: AlarmAction,
    pub(crate) recover_after: i64,
    pub(crate) dry_run: bool,
    pub(crate) created_by: String,
    pub(crate) created_at: Time,
    pub(crate) data_version: String,
}

/// Action of a monitor on a test case.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct MonitorAction {
    pub(crate) test_case_id: String,
    pub(crate) test_case_identifier: String,
    pub(crate) test_case_name: String,
    pub(crate) execution_id: String,
    pub(crate) action: MonitorActionKind,
    pub(crate) reason: String,
}

/// An action that a monitor has taken, or would have taken if it were not dry.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct TakenAction {
    #[serde(flatten)]
    pub(crate) action: MonitorAction,
    pub(crate) time: Time,
    pub(crate) is_dry: bool,
}

/// Actions that a monitor would have done in the past.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct MonitorBacktest {
    pub(crate) executions: i64,
    pub(crate) raised: i64,
    pub(crate) recovered: i64,
    pub(crate) broken: i64,
    pub(crate) actions: Vec<ReplayedAction>,
    /// The time of the first execution that is left.
    pub(crate) left_from: Option<Time>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct ReplayedAction {
    #[serde(flatten)]
    pub(crate) action: MonitorAction,
    pub(crate) request_time: Time,
}

impl MonitorAction {
    /// Returns the CSS class and the label of the action, which was taken or would have been.
    pub(crate) fn label(&self, is_taken: bool) -> (&'static str, &'static str) {
        match (self.action, is_taken) {
            (MonitorActionKind::Skipped, true) => ("flaky", "Skipped"),
            (MonitorActionKind::Skipped, false) => ("none", "Would have skipped"),
            (MonitorActionKind::Notified, true) => ("flaky", "Notified"),
            (MonitorActionKind::Notified, false) => ("none", "Would have notified"),
            (MonitorActionKind::Recovered, true) => ("pass", "Recovered"),
            (MonitorActionKind::Recovered, false) => ("none", "Would have lifted: recovered"),
            (MonitorActionKind::Broken, true) => ("fail", "Broken"),
            (MonitorActionKind::Broken, false) => ("none", "Would have lifted: broken"),
            (_, true) => ("flaky", "Muted"),
            (_, false) => ("none", "Would have muted"),
        }
    }
}
