//! What an execution may be asked, and how results add up.

use assay_proto::{
    ExecutionStatus, Fault, ReportStatus, TestResult, Violation,
    execution::{ExecutionMode, StartExecutionInput},
    worst,
};

use crate::execution::Run;

/// How long the tags of an execution may be.
const LONGEST_TAGS: usize = 1000;

/// How long an idempotency key may be.
const LONGEST_KEY: usize = 255;

/// Checks how an execution is to be started.
pub(crate) fn startable(input: Option<StartExecutionInput>) -> Result<StartExecutionInput, Fault> {
    let input = input.unwrap_or_default();
    match check_tags("Tags", input.tags.as_deref()) {
        Some(violation) => Err(Fault::Invalid(vec![violation])),
        None => Ok(input),
    }
}

/// Who is to run the tests.
pub(crate) fn mode_of(input: &StartExecutionInput) -> ExecutionMode {
    match input.mode() {
        ExecutionMode::Unspecified => ExecutionMode::Dispatch,
        mode => mode,
    }
}

/// Checks what a client calls its request.
pub(crate) fn check_idempotency_key(key: &str) -> Result<(), Fault> {
    if (1..=LONGEST_KEY).contains(&key.len()) && key.chars().all(|c| c.is_ascii_graphic()) {
        return Ok(());
    }
    let problem = format!("must have 1 to {LONGEST_KEY} visible ASCII characters");
    Err(Fault::invalid("Idempotency-Key", problem))
}

/// Whether an execution is still to be canceled.
pub(crate) fn cancelable(run: &Run) -> Result<bool, Fault> {
    match run.execution.status() {
        ExecutionStatus::Canceled => Ok(false),
        ExecutionStatus::Completed => Err(ended("the execution was completed")),
        _ => Ok(true),
    }
}

/// Checks tags that a client sent in `field`.
pub(crate) fn check_tags(field: &str, tags: Option<&str>) -> Option<Violation> {
    let tags = tags.unwrap_or_default();
    let problem = if tags.chars().count() > LONGEST_TAGS {
        format!("must have at most {LONGEST_TAGS} characters")
    } else if tags.contains('\0') {
        "must not contain NUL characters".to_owned()
    } else {
        return None;
    };
    Some(Violation { field: field.to_owned(), problem })
}

/// Whether an execution is still to be completed; fails if its caller cannot do that.
pub(crate) fn completable(run: &Run) -> Result<bool, Fault> {
    refuse_dispatched(run)?;
    match run.execution.status() {
        ExecutionStatus::Completed => Ok(false),
        ExecutionStatus::Canceled => Err(ended("the execution was canceled")),
        _ => Ok(true),
    }
}

/// Refuses what is for External executions only.
pub(crate) fn refuse_dispatched(run: &Run) -> Result<(), Fault> {
    if run.mode() == ExecutionMode::External {
        return Ok(());
    }
    let reason = "engines run this execution; they report its results".to_owned();
    Err(Fault::Conflict { code: "not_external", reason })
}

/// The conflict of what is asked of an execution that is over.
pub(crate) fn ended(reason: &str) -> Fault {
    Fault::Conflict { code: "execution_ended", reason: reason.to_owned() }
}

/// Where a report stands once all its instances are there.
pub(crate) fn status_of_finished(result: TestResult) -> ReportStatus {
    match result {
        TestResult::Error => ReportStatus::EngineExecutionFailure,
        _ => ReportStatus::InReview,
    }
}

/// How an execution did, given how it did so far and the result of one more of its tests: a test
/// that was skipped does not spoil what has passed.
pub(crate) fn overall(one: TestResult, other: TestResult) -> TestResult {
    match (one, other) {
        (TestResult::Passed, TestResult::Canceled) | (TestResult::Canceled, TestResult::Passed) => {
            TestResult::Passed
        }
        _ => worst(one, other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_skipped_test_does_not_spoil_an_execution() {
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
    fn an_error_is_the_engines_failure_and_all_else_is_reviewed() {
        assert_eq!(status_of_finished(TestResult::Error), ReportStatus::EngineExecutionFailure);
        assert_eq!(status_of_finished(TestResult::Failed), ReportStatus::InReview);
        assert_eq!(status_of_finished(TestResult::Aborted), ReportStatus::InReview);
    }

    #[test]
    fn engines_run_an_execution_unless_its_caller_does() {
        let mode = |mode: Option<ExecutionMode>| {
            let mode = mode.map(Into::into);
            mode_of(&StartExecutionInput { mode, ..StartExecutionInput::default() })
        };
        assert_eq!(mode(None), ExecutionMode::Dispatch);
        assert_eq!(mode(Some(ExecutionMode::External)), ExecutionMode::External);
    }

    #[test]
    fn a_key_is_short_and_printable() {
        for (key, fits) in
            [("7", true), (&"k".repeat(255), true), ("", false), (&"k".repeat(256), false)]
        {
            assert_eq!(check_idempotency_key(key).is_ok(), fits, "{key}");
        }
        for key in ["a b", "a\0", "ä"] {
            assert!(check_idempotency_key(key).is_err(), "{key:?} was taken");
        }
    }
}
