//! The parameters in the query of a URL.

use std::error::Error;

use axum::extract::{self, FromRequestParts, rejection::QueryRejection};
use http::request::Parts;
use serde::de::{DeserializeOwned, value};

use crate::{body::misfit, problem::Problem};

/// The parameters of a query that an operation knows; others are ignored. None has a control
/// character: no text that is searched for has one, and PostgreSQL accepts no NUL.
pub(crate) struct Query<T>(pub(crate) T);

impl<S: Sync, T: DeserializeOwned> FromRequestParts<S> for Query<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let pairs = extract::Query::<Vec<(String, String)>>::try_from_uri(&parts.uri)?.0;
        let odd = pairs.iter().find(|(_, value)| value.contains(char::is_control));
        if let Some((name, _)) = odd {
            return Err(Problem::invalid(name, "must not contain control characters"));
        }
        Ok(Self(extract::Query::try_from_uri(&parts.uri)?.0))
    }
}

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
