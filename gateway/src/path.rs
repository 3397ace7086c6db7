//! The segments of a path.

use axum::{
    extract::{FromRequestParts, rejection::PathRejection},
    routing::MethodRouter,
};

use crate::{problem::Problem, services::Services};

/// What the variable segments of a path say. The services know what an id looks like.
#[derive(FromRequestParts)]
#[from_request(via(axum::extract::Path), rejection(Problem))]
pub(crate) struct Path<T>(pub(crate) T);

/// What cannot be read names no record.
impl From<PathRejection> for Problem {
    fn from(_: PathRejection) -> Self {
        Self::not_found()
    }
}

/// A permanent URL, which only reads: for other methods, `0` is not an id.
pub(crate) fn only_read(route: MethodRouter<Services>) -> MethodRouter<Services> {
    route.fallback(async || Problem::not_found())
}
