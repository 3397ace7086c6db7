//! The executions and reports that services know once they have received all events of them.

use assay_proto::events::{ExecutionChanged, ReportsChanged};
use uuid::Uuid;

/// Reports of test cases.
#[derive(Debug, Default)]
pub struct KnownReports {
    /// Those that have ended, by execution.
    pub ended: Vec<ReportsChanged>,
    /// Those that have not, or not again.
    pub pending: Vec<Uuid>,
}

/// The executions of a project that its records show.
#[derive(Debug, Default)]
pub struct KnownExecutions {
    /// The latest one of each test set, the latest completed one of each subject, and the latest ended
    /// one.
    pub executions: Vec<ExecutionChanged>,
    /// The reports of the latest execution of which any has ended.
    pub reports: KnownReports,
}
