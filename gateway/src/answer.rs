//! Answers with a record: its JSON, its version, and where it is.

use axum::{
    body::Body,
    response::{IntoResponse, Response},
};
use futures::TryStreamExt;
use http::{
    HeaderName, HeaderValue, StatusCode,
    header::{CONTENT_TYPE, ETAG, LOCATION},
};
use serde::Serialize;
use tonic::Streaming;

use crate::{array, problem::Problem};

const JSON: (HeaderName, HeaderValue) =
    (CONTENT_TYPE, HeaderValue::from_static("application/json"));

/// A message that is answered as JSON.
pub(crate) trait Answer: Serialize {
    /// Its version, where it has one that a client may send back.
    fn data_version(&self) -> Option<&str> {
        None
    }
}

/// A record.
pub(crate) struct Record<T>(pub(crate) T);

impl<T: Answer> IntoResponse for Record<T> {
    fn into_response(self) -> Response {
        match serde_json::to_vec(&self.0) {
            Ok(json) => ([JSON], etag(&self.0), json).into_response(),
            Err(error) => unwritable(&error).into_response(),
        }
    }
}

/// A record that was made, and the path under which it is from now on.
pub(crate) struct Created<R>(pub(crate) String, pub(crate) R);

impl<R: IntoResponse> IntoResponse for Created<R> {
    fn into_response(self) -> Response {
        (StatusCode::CREATED, [(LOCATION, self.0)], self.1).into_response()
    }
}

/// A record whose last field is an array, which may be too long for one message.
pub(crate) trait InParts: Answer + Send + 'static {
    type Item: Serialize + Send + 'static;

    /// What a part carries of the array.
    fn into_items(self) -> Vec<Self::Item>;
}

/// A record in parts: the first holds all but the rest of its array, which the others bring.
pub(crate) struct Parts<T> {
    pub(crate) first: T,
    rest: Streaming<T>,
}

impl<T: InParts> Parts<T> {
    /// Waits for the first part.
    pub(crate) async fn of(answer: tonic::Response<Streaming<T>>) -> Result<Self, Problem> {
        let mut rest = answer.into_inner();
        let first = rest.message().await?.ok_or_else(|| {
            tracing::error!("a record came without any part");
            Problem::internal()
        })?;
        Ok(Self { first, rest })
    }
}

impl<T: InParts> Parts<T> {
    /// The only element of an array, composed of the first part and of what others know.
    pub(crate) fn map_first<R>(self, compose: impl FnOnce(T) -> R) -> PartsInArray<R, T> {
        PartsInArray { first: compose(self.first), rest: self.rest }
    }
}

impl<T: InParts> IntoResponse for Parts<T> {
    fn into_response(self) -> Response {
        match continued(&self.first, self.rest, b"]}") {
            Ok(body) => ([JSON], etag(&self.first), body).into_response(),
            Err(error) => unwritable(&error).into_response(),
        }
    }
}

/// An array of one record in parts. What is answered first may have another shape.
pub(crate) struct PartsInArray<R, T> {
    first: R,
    rest: Streaming<T>,
}

impl<R: Serialize, T: InParts> IntoResponse for PartsInArray<R, T> {
    fn into_response(self) -> Response {
        match continued(&[&self.first], self.rest, b"]}]") {
            Ok(body) => ([JSON], body).into_response(),
            Err(error) => unwritable(&error).into_response(),
        }
    }
}

/// The JSON of `first`, whose array goes on with the rest before it ends.
fn continued<T: InParts>(
    first: &impl Serialize,
    rest: Streaming<T>,
    end: &'static [u8],
) -> Result<Body, serde_json::Error> {
    let mut open = serde_json::to_vec(first)?;
    debug_assert!(open.ends_with(end), "the array is the last field");
    open.truncate(open.len() - end.len());
    Ok(array::body(open, rest.map_ok(T::into_items), end))
}

fn etag(record: &impl Answer) -> Option<[(HeaderName, HeaderValue); 1]> {
    let tag = format!("\"{}\"", record.data_version()?);
    Some([(ETAG, HeaderValue::try_from(tag).ok()?)])
}

fn unwritable(error: &serde_json::Error) -> Problem {
    tracing::error!(%error, "a record cannot be written as JSON");
    Problem::internal()
}
