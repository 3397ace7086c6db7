//! Query parameters.

use std::{borrow::Cow, error::Error};

use axum::extract::{self, FromRequestParts, rejection::QueryRejection};
use http::{Uri, request::Parts};
use serde::{
    Deserialize, Deserializer,
    de::{DeserializeOwned, IntoDeserializer, value},
};

use crate::{body::invalid, declared::Unknown, problem::Problem, services::Services};

/// The query parameters of an operation; others are ignored unless they are probably misspelt ones of it. Empty ones
/// count as absent, as forms send them. Control characters are rejected, because no stored text has them and PostgreSQL
/// does not accept NUL.
pub(crate) struct Query<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequestParts<Services> for Query<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, services: &Services) -> Result<Self, Problem> {
        services.declared().check_query(parts, Unknown::Ignored)?;
        read(parts).map(Self)
    }
}

/// The query parameters of an operation that refuses others: without one that is misspelt, it would do something else.
/// For the same reason, it refuses an empty one whose smallest length is 1, as that of a variable that is not set.
pub(crate) struct OnlyQuery<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequestParts<Services> for OnlyQuery<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, services: &Services) -> Result<Self, Problem> {
        services.declared().check_query(parts, Unknown::Refused)?;
        read(parts).map(Self)
    }
}

fn read<T: DeserializeOwned>(parts: &Parts) -> Result<T, Problem> {
    let pairs: Vec<(String, String)> = extract::Query::try_from_uri(&parts.uri)?.0;
    let invalid = pairs.iter().find(|(_, value)| value.contains(char::is_control));
    if let Some((name, _)) = invalid {
        return Err(Problem::invalid(name, "must not contain control characters"));
    }
    if pairs.iter().all(|(_, value)| !value.is_empty()) {
        return Ok(extract::Query::try_from_uri(&parts.uri)?.0);
    }
    Ok(extract::Query::try_from_uri(&without_empty(&parts.uri)?)?.0)
}

/// Returns a URI with those of the parameters that are not empty, as they were sent: encoded again, they could be too
/// long for a URI.
fn without_empty(uri: &Uri) -> Result<Uri, Problem> {
    let pairs = uri.query().unwrap_or_default().split('&');
    let given =
        pairs.filter(|pair| pair.split_once('=').is_some_and(|(_, value)| !value.is_empty()));
    let query = format!("/?{}", given.collect::<Vec<_>>().join("&"));
    query.parse().map_err(|_| Problem::malformed("the query string is malformed"))
}

/// Reads an empty parameter as absent, as forms send it.
pub(crate) fn unless_empty<'de, T, D>(deserializer: D) -> Result<Option<T>, D::Error>
where
    T: Deserialize<'de>,
    D: Deserializer<'de>,
{
    match Option::<Cow<'de, str>>::deserialize(deserializer)? {
        Some(text) if !text.is_empty() => T::deserialize(text.into_deserializer()).map(Some),
        _ => Ok(None),
    }
}

impl From<QueryRejection> for Problem {
    fn from(rejection: QueryRejection) -> Self {
        let mut causes = std::iter::successors(rejection.source(), |&cause| cause.source());
        let deserialization = causes
            .find_map(|cause| cause.downcast_ref::<serde_path_to_error::Error<value::Error>>());
        match deserialization {
            Some(error) => invalid(error.path(), &error.inner().to_string()),
            None => Self::malformed("the query string is malformed"),
        }
    }
}
