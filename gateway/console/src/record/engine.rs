//! Engines, and the queues of work that waits for them.

use serde::Deserialize;

use super::time::Time;

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Engine {
    pub(crate) name: String,
    pub(crate) target_group: String,
    pub(crate) labels: Vec<String>,
    pub(crate) project_ids: Vec<String>,
    pub(crate) version: String,
    pub(crate) state: String,
    pub(crate) last_seen_time: Time,
    pub(crate) leases: Vec<EngineLease>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct EngineLease {
    pub(crate) test_report_id: String,
    pub(crate) test_case_identifier: String,
    pub(crate) lease_time: Time,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Queues {
    pub(crate) items: Vec<Queue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Queue {
    pub(crate) labels: Vec<String>,
    pub(crate) environment_id: Option<String>,
    pub(crate) queued: i64,
    pub(crate) queued_since: Time,
    pub(crate) pools: Vec<QueuePool>,
}

/// A pool of which the tests of a queue need a value.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct QueuePool {
    pub(crate) id: String,
    pub(crate) project_id: String,
    pub(crate) name: String,
}
