//! Incidents.

use serde::Deserialize;

use super::{name::IncidentKind, time::Time};

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct IncidentEntry {
    pub(crate) id: String,
    pub(crate) kind: IncidentKind,
    pub(crate) headline: String,
    pub(crate) begun_at: Time,
    pub(crate) last_seen_at: Time,
    pub(crate) ended_at: Option<Time>,
    pub(crate) ended_by_execution_id: Option<String>,
    pub(crate) executions: i64,
    pub(crate) test_sets: i64,
}

/// An incident with the executions that it affects.
#[derive(Deserialize)]
pub(crate) struct Incident {
    #[serde(flatten)]
    pub(crate) entry: IncidentEntry,
    #[serde(rename = "Affected")]
    pub(crate) affected: Vec<IncidentExecution>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct IncidentExecution {
    pub(crate) execution_id: String,
    pub(crate) test_set_name: String,
    pub(crate) request_time: Time,
}
