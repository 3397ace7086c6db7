//! Rules for starting, completing and canceling executions.

use assay_proto::{
    ExecutionStatus, Fault,
    execution::{ExecutionMode, StartExecutionInput},
};
use assay_records::Check;

use crate::progress::execution::ExecutionState;

/// Maximum length of the tags of an execution, in characters.
const LONGEST_TAGS: usize = 1000;

/// Maximum length of an idempotency key, in characters.
const LONGEST_KEY: usize = 255;

/// A request to start an execution once, however often the client sends it.
pub(crate) struct IdempotentRequest {
    pub(crate) key: String,
    /// The request without its key. The same key with another request is an error.
    pub(crate) request: Vec<u8>,
}

/// Checks the input of a new execution.
pub(crate) fn check_start(input: &StartExecutionInput) -> Result<(), Fault> {
    let mut check = Check::default();
    check_tags("Tags", input.tags.as_deref(), &mut check);
    check.done()
}

/// Checks the tags that a client sent in `field`.
pub(crate) fn check_tags(field: &str, tags: Option<&str>, check: &mut Check) {
    let tags = tags.unwrap_or_default();
    if tags.chars().count() > LONGEST_TAGS {
        check.refuse(field, format!("must have at most {LONGEST_TAGS} characters"));
    } else {
        check.text(field, tags);
    }
}

/// Returns the mode of a new execution. Engines run it unless the client asks otherwise.
pub(crate) fn mode_of(input: &StartExecutionInput) -> ExecutionMode {
    match input.mode() {
        ExecutionMode::Unspecified => ExecutionMode::Dispatch,
        mode => mode,
    }
}

/// Checks the idempotency key of a request.
pub(crate) fn check_idempotency_key(key: &str) -> Result<(), Fault> {
    if (1..=LONGEST_KEY).contains(&key.len()) && key.chars().all(|c| c.is_ascii_graphic()) {
        return Ok(());
    }
    let problem = format!("must have 1 to {LONGEST_KEY} visible ASCII characters");
    Err(Fault::invalid("Idempotency-Key", problem))
}

/// Whether canceling changes the execution. Fails if it has completed.
pub(crate) fn can_cancel(state: &ExecutionState) -> Result<bool, Fault> {
    match state.execution.status() {
        ExecutionStatus::Canceled => Ok(false),
        ExecutionStatus::Completed => Err(ended("the execution was completed")),
        _ => Ok(true),
    }
}

/// Whether completing changes the execution. Fails if engines run it or it was canceled.
pub(crate) fn can_complete(state: &ExecutionState) -> Result<bool, Fault> {
    require_external(state)?;
    match state.execution.status() {
        ExecutionStatus::Completed => Ok(false),
        ExecutionStatus::Canceled => Err(ended("the execution was canceled")),
        _ => Ok(true),
    }
}

/// Fails if engines run the execution.
pub(crate) fn require_external(state: &ExecutionState) -> Result<(), Fault> {
    if state.mode() == ExecutionMode::External {
        return Ok(());
    }
    let reason = "engines run this execution; they report its results".to_owned();
    Err(Fault::Conflict { code: "not_external", reason })
}

/// Returns the conflict of a change to an execution that has ended.
pub(crate) fn ended(reason: &str) -> Fault {
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
