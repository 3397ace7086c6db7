//! Rules for starting, completing and canceling executions.

use assay_auth::Caller;
use assay_proto::{
    ExecutionStatus, Fault, Permission, Timestamp,
    execution::{ExecutionMode, OpenExecutionInput, StartExecutionInput},
};
use assay_records::Check;

use crate::{
    origin::{Origin, OriginNames},
    progress::execution::ExecutionState,
};

/// Maximum length of the name of a reporter, in characters.
const LONGEST_REPORTER: usize = 255;

/// Maximum number of reporters of an execution.
const MOST_REPORTERS: i32 = 10_000;

/// Maximum number of notes on the reports of an execution, and maximum length of one in characters.
pub(super) const MOST_NOTES: usize = 20;
const LONGEST_NOTE: usize = 4096;

/// Maximum grace period of an open execution, in seconds: a day.
pub const LONGEST_GRACE: i32 = 86_400;

/// Maximum length of an idempotency key, in characters.
const LONGEST_KEY: usize = 255;

/// A request to start an execution once, however often the client sends it.
pub struct IdempotentRequest {
    pub key: String,
    /// The request without its key. The same key with another request is an error.
    pub request: Vec<u8>,
}

/// Returns the mode of a new execution. Engines run it unless the client asks otherwise.
pub fn mode_of(input: &StartExecutionInput) -> ExecutionMode {
    match input.mode() {
        ExecutionMode::Unspecified => ExecutionMode::Dispatch,
        mode => mode,
    }
}

/// Checks the idempotency key of a request.
pub fn check_idempotency_key(key: &str) -> Result<(), Fault> {
    let mut check = Check::default();
    check_key("Idempotency-Key", key, &mut check);
    check.done()
}

fn check_key(field: &str, key: &str, check: &mut Check) {
    if !(1..=LONGEST_KEY).contains(&key.len()) || !key.chars().all(|c| c.is_ascii_graphic()) {
        check.refuse(field, format!("must have 1 to {LONGEST_KEY} visible ASCII characters"));
    }
}

/// Checks an execution that is opened by names.
pub fn check_open(input: &OpenExecutionInput, origin: &Origin) -> Result<(), Fault> {
    let mut check = Check::default();
    check.name("Project", &input.project);
    check.name("TestSet", &input.test_set);
    if let Some(key) = &input.key {
        check_key("Key", key, &mut check);
    }
    if let Some(reporter) = &input.reporter {
        check_reporter("Reporter", reporter, &mut check);
    }
    if let Some(reporters) = input.reporters {
        check.range("Reporters", reporters, 1..=MOST_REPORTERS);
    }
    if let Some(grace) = input.grace_in_sec {
        check.range("GraceInSec", grace, 1..=LONGEST_GRACE);
    }
    if input.notes.len() > MOST_NOTES {
        check.refuse("Notes", format!("must be at most {MOST_NOTES}"));
    }
    for (index, note) in input.notes.iter().take(MOST_NOTES).enumerate() {
        let field = format!("Notes/{index}");
        check.text(&field, note);
        check.length(&field, note, LONGEST_NOTE);
    }
    origin.check(&OriginNames::FIELDS, &mut check);
    check.done()
}

/// Returns the times of the request and of the end of a backdated execution.
pub fn past(
    caller: &Caller,
    input: &OpenExecutionInput,
) -> Result<Option<(Timestamp, Timestamp)>, Fault> {
    let Some(request_time) = input.request_time else {
        return match input.completion_date_time {
            Some(_) => Err(Fault::invalid("CompletionDateTime", "requires RequestTime")),
            None => Ok(None),
        };
    };
    if !caller.may(Permission::Write) {
        let reason = "backdated executions require the permission Write";
        return Err(Fault::Forbidden(reason.to_owned()));
    }
    let end = input.completion_date_time.unwrap_or(request_time);
    let mut check = Check::default();
    if request_time.0.timestamp() < 0 {
        check.refuse("RequestTime", "must be 1970-01-01 or later");
    }
    if end < request_time {
        check.refuse("CompletionDateTime", "must not be before RequestTime");
    }
    check.done().map(|()| Some((request_time, end)))
}

/// Checks the name of a reporter.
pub fn check_reporter(field: &str, name: &str, check: &mut Check) {
    check.line(field, name, 1..=LONGEST_REPORTER);
}

/// Fails unless the execution is open.
pub fn require_open(state: &ExecutionState) -> Result<(), Fault> {
    if state.execution.is_open {
        return Ok(());
    }
    let reason = "the execution has a fixed list of test cases; send their results to \
                  …/results, or open an execution with POST /api/executions";
    Err(Fault::Conflict { code: "not_open", reason: reason.to_owned() })
}

/// Whether canceling changes the execution. Fails if it has completed.
pub fn can_cancel(state: &ExecutionState) -> Result<bool, Fault> {
    match state.execution.status() {
        ExecutionStatus::Canceled => Ok(false),
        ExecutionStatus::Completed => Err(ended("the execution was completed")),
        _ => Ok(true),
    }
}

/// Whether completing changes the execution. Fails if engines run it or it was canceled.
pub fn can_complete(state: &ExecutionState) -> Result<bool, Fault> {
    require_external(state)?;
    match state.execution.status() {
        ExecutionStatus::Completed => Ok(false),
        ExecutionStatus::Canceled => Err(ended("the execution was canceled")),
        _ => Ok(true),
    }
}

/// Fails if engines run the execution.
pub fn require_external(state: &ExecutionState) -> Result<(), Fault> {
    if state.mode() == ExecutionMode::External {
        return Ok(());
    }
    let reason = "engines run this execution; they report its results".to_owned();
    Err(Fault::Conflict { code: "not_external", reason })
}

/// Returns the conflict of results for an execution that has ended.
pub fn no_new_results() -> Fault {
    ended("the execution has ended; it accepts no new results")
}

/// Returns the conflict of a change to an execution that has ended.
pub fn ended(reason: &str) -> Fault {
    Fault::Conflict { code: "execution_ended", reason: reason.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn engines_run_an_execution_unless_its_client_does() {
        let mode = |mode: Option<ExecutionMode>| {
            let mode = mode.map(Into::into);
            mode_of(&StartExecutionInput { mode, ..StartExecutionInput::default() })
        };
        assert_eq!(mode(None), ExecutionMode::Dispatch);
        assert_eq!(mode(Some(ExecutionMode::External)), ExecutionMode::External);
    }

    #[test]
    fn idempotency_keys_are_short_and_printable() {
        for (key, fits) in
            [("7", true), (&"k".repeat(255), true), ("", false), (&"k".repeat(256), false)]
        {
            assert_eq!(check_idempotency_key(key).is_ok(), fits, "{key}");
        }
        for key in ["a b", "a\0", "ä"] {
            assert!(check_idempotency_key(key).is_err(), "{key:?} was accepted");
        }
    }
}
