//! What an execution may be asked, and how results add up.

use assay_proto::{
    ExecutionStatus, Fault, ReportStatus, TestResult, Violation,
    execution::{ExecutionMode, StartExecutionInput},
};

use crate::execution::Run;

/// How long the tags of an execution may be.
const LONGEST_TAGS: usize = 1000;

/// Checks how an execution is to be started.
pub(crate) fn startable(input: Option<StartExecutionInput>) -> Result<StartExecutionInput, Fault> {
    let input = input.unwrap_or_default();
    let mut violations = Vec::new();
    if input.mode() != ExecutionMode::External {
        let problem = "must be \"External\": engines are not served yet";
        violations.push(Violation { field: "Mode".to_owned(), problem: problem.to_owned() });
    }
    violations.extend(check_tags("Tags", input.tags.as_deref()));
    if violations.is_empty() { Ok(input) } else { Err(Fault::Invalid(violations)) }
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

/// The worse of two results.
pub(crate) fn worst(one: TestResult, other: TestResult) -> TestResult {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_result_wins_in_any_order() {
        let from_best = [
            TestResult::NotExecuted,
            TestResult::Passed,
            TestResult::Canceled,
            TestResult::Aborted,
            TestResult::Failed,
            TestResult::Error,
        ];
        for (place, worse) in from_best.iter().enumerate() {
            for better in &from_best[..=place] {
                assert_eq!(worst(*worse, *better), *worse);
                assert_eq!(worst(*better, *worse), *worse);
            }
        }
    }

    #[test]
    fn an_error_is_the_engines_failure_and_all_else_is_reviewed() {
        assert_eq!(status_of_finished(TestResult::Error), ReportStatus::EngineExecutionFailure);
        assert_eq!(status_of_finished(TestResult::Failed), ReportStatus::InReview);
        assert_eq!(status_of_finished(TestResult::Aborted), ReportStatus::InReview);
    }

    #[test]
    fn only_external_executions_can_be_started_yet() {
        let of_mode = |mode: Option<ExecutionMode>| {
            let mode = mode.map(Into::into);
            startable(Some(StartExecutionInput { mode, ..StartExecutionInput::default() }))
        };
        assert!(of_mode(Some(ExecutionMode::External)).is_ok());
        for mode in [None, Some(ExecutionMode::Dispatch)] {
            let Err(Fault::Invalid(violations)) = of_mode(mode) else { panic!("was started") };
            assert_eq!(violations[0].field, "Mode");
        }
    }
}
