//! Instances before they are stored.

use assay_proto::{InstanceId, TestResult, Timestamp};

/// The result and the times of an instance.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Outcome {
    pub(crate) instance_nr: i32,
    pub(crate) result: TestResult,
    pub(crate) start_date_time: Option<Timestamp>,
    pub(crate) finish_date_time: Option<Timestamp>,
    pub(crate) duration_in_sec: f64,
}

/// The part of an instance that only its own page shows.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Detail {
    /// The steps in their stored form. Empty if there are none.
    pub(crate) steps: Vec<u8>,
    pub(crate) artifacts_uri: String,
    pub(crate) report_uri: String,
    pub(crate) debug_log_uri: String,
    pub(crate) execution_log_uri: String,
    pub(crate) installation_log_uri: String,
}

/// An instance to store.
#[derive(Debug)]
pub(crate) struct NewInstance {
    pub(crate) id: InstanceId,
    /// The index of its report among the reports that are changed.
    pub(crate) report: usize,
    pub(crate) outcome: Outcome,
    pub(crate) detail: Detail,
}
