//! Faults of reports.

use std::fmt::Display;

use assay_proto::Fault;

/// Text between a problem and its remedy.
const REMEDY: &str = ": send ";

/// Returns the problem that the reason of a fault states, without its remedy.
pub fn problem(reason: &str) -> &str {
    reason.split(REMEDY).next().unwrap_or_default()
}

/// Returns the fault of a report that cannot be parsed. It names the format, the place and the
/// remedy.
pub(crate) fn broken(format: &str, place: &str, problem: impl Display) -> Fault {
    Fault::Malformed(format!(
        "the file was recognized as {format}, but {problem} ({place}){REMEDY}it as the tool wrote it, \
         or `partial=true` to keep the tests in front of that place"
    ))
}

/// Returns the fault of a report that ends too early.
pub(crate) fn truncated(format: &str, place: &str) -> Fault {
    Fault::Malformed(format!(
        "the file was recognized as {format}, but it ends early ({place}){REMEDY}all of it, or \
         `partial=true` to keep the tests in front of that place"
    ))
}

/// Returns the fault of a report that exceeds a limit.
pub(crate) fn excessive(format: &str, place: &str, problem: impl Display) -> Fault {
    let reason = format!("the file was recognized as {format}, but {problem} ({place})");
    Fault::Refused { code: "too_large", reason }
}
