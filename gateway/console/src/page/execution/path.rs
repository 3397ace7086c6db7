//! Paths of executions.

use std::fmt::Display;

use uuid::Uuid;

/// Returns the path of an execution in the interface, for those who do not know its project.
pub(in crate::page) fn path(id: impl Display) -> String {
    format!("/api/projects/0/executions/{id}")
}

/// The page of an execution, for its users or for readers of a share link.
pub(in crate::page) struct Place {
    /// Path of the page.
    pub(in crate::page) page: String,
    /// Path of the execution in the interface.
    pub(in crate::page) api: String,
    /// Path before those of test reports.
    pub(in crate::page) reports: String,
    /// None for readers of a share link, who do not know it.
    pub(in crate::page) id: Option<Uuid>,
}

impl Place {
    /// Returns the page for users.
    pub(in crate::page) fn of(id: Uuid) -> Self {
        let page = format!("/executions/{id}");
        Self { page, api: path(id), reports: String::new(), id: Some(id) }
    }

    /// Returns the page for readers with the secret of a share link.
    pub(in crate::page) fn shared(token: &str) -> Self {
        let page = format!("/shared/{token}");
        Self { api: format!("/api{page}"), reports: page.clone(), page, id: None }
    }
}
