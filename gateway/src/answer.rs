//! Answers with a record: its JSON, its version, and where it is.

use axum::{
    body::Body,
    response::{IntoResponse, Response},
};
use futures::{StreamExt, TryStreamExt, stream::BoxStream};
use http::{
    HeaderName, HeaderValue, StatusCode,
    header::{CONTENT_TYPE, LOCATION},
};
use serde::Serialize;
use tonic::{Status, Streaming};

use crate::{
    array, entity_tag,
    problem::Problem,
    turn::{self, Part},
};

/// Number of messages of a record in parts that are read, after the first, before its answer begins.
/// If the end is among them, the tag of the answer is that of its body.
const READ_AHEAD: usize = 3;

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
            Ok(json) => {
                ([JSON], entity_tag::of_body(self.0.data_version(), &json), json).into_response()
            }
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

/// The parts of a record that follow those that were read.
type Rest<T> = BoxStream<'static, Result<Part<T>, Status>>;

/// A record in parts: the first holds all but the rest of its array, which the others bring.
pub(crate) struct Parts<T: InParts> {
    pub(crate) first: T,
    /// The items of the parts after the first, as far as they were read.
    items: Vec<T::Item>,
    /// The parts that were not read; none if the record is complete.
    rest: Option<Rest<T>>,
}

impl<T: InParts> Parts<T> {
    /// Waits for the first parts.
    pub(crate) async fn of(answer: tonic::Response<Streaming<T>>) -> Result<Self, Problem> {
        let mut rest = turn::messages(answer).boxed();
        let first = rest.try_next().await?.ok_or_else(|| {
            tracing::error!("a record came without any part");
            Problem::internal()
        })?;
        let first = first.into_inner();
        let mut items = Vec::new();
        for _ in 0..READ_AHEAD {
            match rest.try_next().await? {
                Some(part) => items.extend(part.into_inner().into_items()),
                None => return Ok(Self { first, items, rest: None }),
            }
        }
        Ok(Self { first, items, rest: Some(rest) })
    }

    /// The only element of an array, composed of the first part and of what others know.
    pub(crate) fn map_first<R>(self, compose: impl FnOnce(T) -> R) -> PartsInArray<R, T> {
        PartsInArray { first: compose(self.first), items: self.items, rest: self.rest }
    }
}

impl<T: InParts> IntoResponse for Parts<T> {
    fn into_response(self) -> Response {
        const END: &[u8] = b"]}";
        let Self { first, items, rest } = self;
        let version = first.data_version();
        match (beginning(&first, &items, END), rest) {
            (Ok(mut json), None) => {
                json.extend_from_slice(END);
                ([JSON], entity_tag::of_body(version, &json), json).into_response()
            }
            (Ok(open), Some(rest)) => {
                let body = continued(open, rest, END);
                ([JSON], entity_tag::unrepeatable(version), body).into_response()
            }
            (Err(error), _) => unwritable(&error).into_response(),
        }
    }
}

/// An array of one record in parts. What is answered first may have another shape.
pub(crate) struct PartsInArray<R, T: InParts> {
    first: R,
    items: Vec<T::Item>,
    rest: Option<Rest<T>>,
}

impl<R: Serialize, T: InParts> IntoResponse for PartsInArray<R, T> {
    fn into_response(self) -> Response {
        const END: &[u8] = b"]}]";
        match (beginning(&[&self.first], &self.items, END), self.rest) {
            (Ok(open), None) => ([JSON], [&open, END].concat()).into_response(),
            (Ok(open), Some(rest)) => ([JSON], continued(open, rest, END)).into_response(),
            (Err(error), _) => unwritable(&error).into_response(),
        }
    }
}

/// The JSON of `first` with further items in its array, without its end.
fn beginning(
    first: &impl Serialize,
    items: &[impl Serialize],
    end: &[u8],
) -> Result<Vec<u8>, serde_json::Error> {
    let mut json = serde_json::to_vec(first)?;
    debug_assert!(json.ends_with(end), "the array is the last field");
    json.truncate(json.len() - end.len());
    for item in items {
        if !json.ends_with(b"[") {
            json.push(b',');
        }
        serde_json::to_writer(&mut json, item)?;
    }
    Ok(json)
}

/// A body that begins with `open` and continues with the rest as it arrives.
fn continued<T: InParts>(open: Vec<u8>, rest: Rest<T>, end: &'static [u8]) -> Body {
    array::body(open, rest.map_ok(|part| part.map(T::into_items)), end)
}

fn unwritable(error: &serde_json::Error) -> Problem {
    tracing::error!(%error, "a record cannot be written as JSON");
    Problem::internal()
}
