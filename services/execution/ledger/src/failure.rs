//! Failures: the instances whose last attempt failed, and the reports that an engine could not run,
//! with a fingerprint of the cause.

pub mod derivation;
pub mod derive;
pub mod judged;
pub mod retried;
mod source;
pub mod store;
pub mod text;

use assay_fingerprint::Failure as Cause;
use assay_proto::TestResult;

use crate::{cause_rule::CauseRules, instance::steps::StoredStep};

/// Returns the cause of the failure of an attempt, without the rules of its project.
pub fn cause(result: TestResult, steps: &[StoredStep]) -> Option<Cause> {
    CauseRules::default().of_steps(result, steps)
}
