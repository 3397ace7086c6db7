//! The parameters in the query of a URL.

use std::error::Error;

use axum::extract::{FromRequestParts, rejection::QueryRejection};
use serde::de::value;

use crate::{body::misfit, problem::Problem};

/// The parameters of a query that an operation knows; others are ignored.
#[derive(FromRequestParts)]
#[from_request(via(axum::extract::Query), rejection(Problem))]
pub(crate) struct Query<T>(pub(crate) T);

impl From<QueryRejection> for Problem {
    fn from(rejection: QueryRejection) -> Self {
        let mut causes = std::iter::successors(rejection.source(), |&cause| cause.source());
        let misread = causes
            .find_map(|cause| cause.downcast_ref::<serde_path_to_error::Error<value::Error>>());
        match misread {
            Some(error) => misfit(error.path(), &error.inner().to_string()),
            None => Self::malformed("the query cannot be read"),
        }
    }
}
