//! The order of test results.

use crate::TestResult;

impl TestResult {
    /// Whether the test did not do what it should, because of the software or of something else.
    pub fn is_failure(self) -> bool {
        matches!(self, Self::Failed | Self::Error)
    }
}

/// Returns the worse of two results.
pub fn worst(one: TestResult, other: TestResult) -> TestResult {
    if severity(other) > severity(one) { other } else { one }
}

fn severity(result: TestResult) -> u8 {
    match result {
        TestResult::Unspecified | TestResult::NotExecuted => 0,
        TestResult::Passed => 1,
        TestResult::Canceled => 2,
        TestResult::Aborted => 3,
        TestResult::Failed => 4,
        TestResult::Error => 5,
    }
}
