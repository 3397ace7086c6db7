//! Paths of executions in the interface.

use std::fmt::Display;

/// Returns the path of an execution, for those who do not know its project.
pub(in crate::page) fn path(id: impl Display) -> String {
    format!("/api/projects/0/executions/{id}")
}
