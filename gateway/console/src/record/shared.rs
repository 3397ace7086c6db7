//! Shared executions, and the share links to them.

use serde::Deserialize;

use super::{
    execution::{Changes, Statistic},
    name::{ExecutionStatus, VerdictState},
    outcome::Outcome,
    report::{Attempt, ReportEntry},
    time::Time,
};

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct ShareLink {
    pub(crate) id: String,
    pub(crate) expires_at: Time,
    pub(crate) created_by: String,
    pub(crate) created_at: Time,
}

/// A new share link with its secret.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct NewShareLink {
    pub(crate) url: Option<String>,
    pub(crate) badge_url: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct SharedExecution {
    pub(crate) test_set_name: String,
    pub(crate) software_name: String,
    pub(crate) software_version: String,
    pub(crate) environment_name: String,
    pub(crate) branch: String,
    pub(crate) commit: String,
    pub(crate) request_time: Time,
    pub(crate) status: ExecutionStatus,
    pub(crate) result: Outcome,
    pub(crate) statistic: Statistic,
    pub(crate) changes: Changes,
    pub(crate) verdict: VerdictState,
    pub(crate) expires_at: Time,
    pub(crate) duration_in_sec: f64,
}

impl SharedExecution {
    pub(crate) fn is_running(&self) -> bool {
        self.status.is_running()
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct SharedInstance {
    pub(crate) report: ReportEntry,
    pub(crate) instance_nr: i64,
    pub(crate) instance_count: i64,
    pub(crate) variant: String,
    pub(crate) files: Vec<String>,
    /// Earlier attempts.
    pub(crate) attempts: Vec<Attempt>,
    /// The last attempt.
    #[serde(flatten)]
    pub(crate) last: Attempt,
}
