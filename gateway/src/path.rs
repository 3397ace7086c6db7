//! The segments of a path.

use axum::extract::{FromRequestParts, rejection::PathRejection};

use crate::problem::Problem;

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
