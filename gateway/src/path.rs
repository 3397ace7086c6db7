//! Variable segments of paths.

use axum::{
    extract::{FromRequestParts, rejection::PathRejection},
    routing::MethodRouter,
};

use crate::{problem::Problem, services::Services};

/// The variable segments of a path, as text: the services parse ids.
#[derive(FromRequestParts)]
#[from_request(via(axum::extract::Path), rejection(Problem))]
pub(crate) struct Path<T>(pub(crate) T);

/// Returns the id of a project that a permanent URL has, or nothing for `0`, which stands for any.
pub(crate) fn unless_zero(project: String) -> Option<String> {
    (project != "0").then_some(project)
}

/// A segment that cannot be decoded names no record.
impl From<PathRejection> for Problem {
    fn from(_: PathRejection) -> Self {
        Self::not_found()
    }
}

/// Makes other methods than those of a permanent URL fail with 404: for them, `0` is not a valid
/// id.
pub(crate) fn read_only(route: MethodRouter<Services>) -> MethodRouter<Services> {
    route.fallback(async || Problem::not_found())
}
