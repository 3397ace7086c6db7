//! The segments of a path.

use axum::{
    extract::{FromRequestParts, rejection::PathRejection},
    routing::{MethodFilter, MethodRouter},
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

/// A permanent URL, which is there to be read: for everything else, `0` is no id.
pub(crate) fn only_read(route: MethodRouter<Services>) -> MethodRouter<Services> {
    let writing = MethodFilter::POST.or(MethodFilter::PUT).or(MethodFilter::PATCH);
    route.on(writing.or(MethodFilter::DELETE), async || Problem::not_found())
}
