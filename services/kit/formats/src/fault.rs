//! Faults of reports.

use std::fmt::Display;

use assay_proto::Fault;

/// Returns the fault of a report that cannot be parsed. It names the format, the place and the
/// remedy.
pub(crate) fn broken(format: &str, place: &str, problem: impl Display) -> Fault {
    Fault::Malformed(format!(
        "the file was recognized as {format}, but {problem} ({place}): send it as the tool wrote it, \
         or `partial=true` to keep the tests in front of that place"
    ))
}

/// Returns the fault of a report that ends too early.
pub(crate) fn truncated(format: &str, place: &str) -> Fault {
    Fault::Malformed(format!(
        "the file was recognized as {format}, but it ends early ({place}): send all of it, or \
         `partial=true` to keep the tests in front of that place"
    ))
}

/// Returns the fault of a report that exceeds a limit.
pub(crate) fn excessive(format: &str, place: &str, problem: impl Display) -> Fault {
    let reason = format!("the file was recognized as {format}, but {problem} ({place})");
    Fault::Refused { code: "too_large", reason }
}
