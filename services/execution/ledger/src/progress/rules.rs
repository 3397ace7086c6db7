//! How results combine, and the states that follow from them.

use assay_proto::{ReportStatus, TestResult, Timestamp, worst};

/// Returns the status of a report that has all its instances.
pub fn status_of_finished(result: TestResult) -> ReportStatus {
    match result {
        TestResult::Error => ReportStatus::EngineExecutionFailure,
        _ => ReportStatus::InReview,
    }
}

/// Whether a report with this status still expects instances.
pub fn is_pending(status: ReportStatus) -> bool {
    matches!(status, ReportStatus::NotExecuted | ReportStatus::Running)
}

/// Returns the result of an execution from its result so far and that of one more test. A skipped
/// test does not change the result of an execution that has passed.
pub fn overall(one: TestResult, other: TestResult) -> TestResult {
    match (one, other) {
        (TestResult::Passed, TestResult::Canceled) | (TestResult::Canceled, TestResult::Passed) => {
            TestResult::Passed
        }
        _ => worst(one, other),
    }
}

/// Returns the earlier of two times, each of which may be unknown.
pub fn earliest(one: Option<Timestamp>, other: Option<Timestamp>) -> Option<Timestamp> {
    one.into_iter().chain(other).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn skipped_tests_do_not_change_a_passed_execution() {
        use TestResult::{Canceled, Failed, Passed};
        for (one, other, expected) in [
            (Passed, Canceled, Passed),
            (Canceled, Passed, Passed),
            (Canceled, Canceled, Canceled),
            (Failed, Canceled, Failed),
        ] {
            assert_eq!(overall(one, other), expected);
        }
    }

    #[test]
    fn errors_are_engine_failures_and_other_results_await_review() {
        assert_eq!(status_of_finished(TestResult::Error), ReportStatus::EngineExecutionFailure);
        assert_eq!(status_of_finished(TestResult::Failed), ReportStatus::InReview);
        assert_eq!(status_of_finished(TestResult::Aborted), ReportStatus::InReview);
    }
}
