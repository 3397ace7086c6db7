//! The parameters in the query of a URL.

use axum::extract::{FromRequestParts, rejection::QueryRejection};

use crate::problem::Problem;

/// The parameters of a query that an operation knows; others are ignored.
#[derive(FromRequestParts)]
#[from_request(via(axum::extract::Query), rejection(Problem))]
pub(crate) struct Query<T>(pub(crate) T);

impl From<QueryRejection> for Problem {
    fn from(_: QueryRejection) -> Self {
        Self::malformed("the query cannot be read")
    }
}
