//! Results of steps, and those of scenarios that follow from them.

use assay_proto::TestResult;

use crate::{Attempt, Nature, Problem, Step, limits::MOST_STEPS};

/// Returns the result of a step for its status.
pub(super) fn result(status: &str) -> TestResult {
    match status.to_ascii_lowercase().as_str() {
        "passed" => TestResult::Passed,
        "skipped" | "untested" => TestResult::Canceled,
        // A scenario with an undefined or unfinished step fails.
        "failed" | "undefined" | "ambiguous" | "pending" => TestResult::Failed,
        "" => TestResult::NotExecuted,
        _ => TestResult::Error,
    }
}

/// Returns the message of a step without one of its own, if its status needs an explanation.
pub(super) fn explanation(status: &str, name: &str) -> String {
    match status.to_ascii_lowercase().as_str() {
        status @ ("undefined" | "ambiguous" | "pending") => {
            format!("The step is {status}: {}", name.trim())
        }
        _ => String::new(),
    }
}

/// Adds a step if there is room. One that failed replaces the last one otherwise, as the result follows from
/// the steps.
pub(super) fn add(attempt: &mut Attempt, step: Step) {
    if attempt.steps.len() >= MOST_STEPS {
        if Nature::of(step.result).is_none() {
            return;
        }
        attempt.steps.pop();
    }
    attempt.steps.push(step);
}

/// Completes an attempt by its steps. `reported` is the result that the tool itself reports.
pub(super) fn complete(attempt: &mut Attempt, reported: Option<TestResult>) {
    let of_steps = || {
        let ranks = [TestResult::Error, TestResult::Failed, TestResult::Canceled];
        let has = |result: &TestResult| attempt.steps.iter().any(|step| step.result == *result);
        let is_open = |step: &Step| step.result == TestResult::NotExecuted;
        let without_failure = if attempt.steps.is_empty() || !attempt.steps.iter().any(is_open) {
            TestResult::Passed
        } else if attempt.steps.iter().all(is_open) {
            TestResult::Canceled
        } else {
            // A step has begun, and none has an end.
            TestResult::Aborted
        };
        ranks.into_iter().find(has).unwrap_or(without_failure)
    };
    attempt.result = reported.unwrap_or_else(of_steps);
    attempt.problems = attempt.steps.iter().filter_map(problem).collect();
    attempt.problems.truncate(crate::limits::MOST_PROBLEMS);
    if let Some(nature) = Nature::of(attempt.result)
        && attempt.problems.is_empty()
    {
        // Behave has no reason for the failure of a hook.
        let message = match reported {
            Some(_) => "The scenario failed outside of its steps.".to_owned(),
            None => String::new(),
        };
        attempt.problems.push(Problem { nature, message, ..Problem::default() });
    }
    if attempt.result == TestResult::Canceled {
        let skipped = attempt.steps.iter().find(|step| step.result == TestResult::Canceled);
        attempt.reason = skipped.map(|step| step.message.clone()).unwrap_or_default();
    }
}

fn problem(step: &Step) -> Option<Problem> {
    let nature = Nature::of(step.result)?;
    Some(Problem { nature, message: step.message.clone(), text: String::new() })
}
