//! Failures: the instances whose last attempt failed, and the reports that an engine could not run,
//! with a fingerprint of the cause.

pub mod derive;
pub mod store;

use assay_fingerprint::Failure as Cause;
use assay_proto::TestResult;

use crate::instance::steps::StoredStep;

/// Returns the cause of the failure of an attempt: the message of its first failed step that has
/// one.
pub fn cause(result: TestResult, steps: &[StoredStep]) -> Option<Cause> {
    let mut failed = steps.iter().filter(|step| step.result().is_failure());
    if !result.is_failure() {
        return None;
    }
    failed.find_map(|step| Cause::of(&step.actual_result))
}
