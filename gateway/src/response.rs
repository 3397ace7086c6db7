//! JSON responses with their entity tag and location.

use axum::{
    body::Body,
    response::{IntoResponse, Response},
};
use futures::{StreamExt, TryStreamExt, stream::BoxStream};
use http::{
    HeaderName, HeaderValue, StatusCode,
    header::{CONTENT_TYPE, LINK, LOCATION},
};
use serde::Serialize;
use tonic::{Status, Streaming};

use crate::{
    array, entity_tag,
    problem::Problem,
    rendering::{self, InTurn},
};

/// Number of messages of a streamed resource that are read, after the first, before its response
/// begins. If the last message is among them, the entity tag is that of the whole body.
const READ_AHEAD: usize = 3;

const JSON: (HeaderName, HeaderValue) =
    (CONTENT_TYPE, HeaderValue::from_static("application/json"));

/// A message that is returned as JSON.
pub(crate) trait Resource: Serialize {
    /// The version of the record, if a client may send it back.
    fn data_version(&self) -> Option<&str> {
        None
    }

    /// The link to the page of the console that shows the record.
    fn page(&self) -> Option<&str> {
        None
    }
}

/// Returns the header with the link to the page of a record (RFC 8288).
fn page_link(record: &impl Resource) -> Option<[(HeaderName, HeaderValue); 1]> {
    let link = format!("<{}>; rel=\"alternate\"; type=\"text/html\"", record.page()?);
    Some([(LINK, HeaderValue::try_from(link).ok()?)])
}

/// A resource as JSON, with its entity tag.
pub(crate) struct Json<T>(pub(crate) T);

impl<T: Resource> IntoResponse for Json<T> {
    fn into_response(self) -> Response {
        match serde_json::to_vec(&self.0) {
            Ok(json) => {
                let tag = entity_tag::of_body(self.0.data_version(), &json);
                ([JSON], page_link(&self.0), tag, json).into_response()
            }
            Err(error) => serialization_error(&error).into_response(),
        }
    }
}

/// The path of a new record, and the response that shows it.
pub(crate) struct Created<R>(pub(crate) String, pub(crate) R);

impl<R: IntoResponse> IntoResponse for Created<R> {
    fn into_response(self) -> Response {
        (StatusCode::CREATED, [(LOCATION, self.0)], self.1).into_response()
    }
}

/// A resource whose last field is an array that may be too long for one message. The first message
/// has all other fields, further ones only items of the array.
pub(crate) trait StreamedResource: Resource + Send + 'static {
    type Item: Serialize + Send + 'static;

    /// Returns the items of the array that this message has.
    fn into_items(self) -> Vec<Self::Item>;
}

/// The messages of a streamed resource that have not been read yet.
type Rest<T> = BoxStream<'static, Result<InTurn<T>, Status>>;

/// A streamed resource as JSON, with its entity tag.
pub(crate) struct Streamed<T: StreamedResource> {
    pub(crate) first: T,
    /// Items of the messages that have been read after the first.
    items: Vec<T::Item>,
    /// None if all messages have been read.
    rest: Option<Rest<T>>,
}

impl<T: StreamedResource> Streamed<T> {
    /// Waits for the first messages.
    pub(crate) async fn of(response: tonic::Response<Streaming<T>>) -> Result<Self, Problem> {
        let mut rest = rendering::messages(response).boxed();
        let (first, _) = rest.try_next().await?.ok_or_else(|| {
            tracing::error!("service returned a record without messages");
            Problem::internal()
        })?;
        let mut items = Vec::new();
        for _ in 0..READ_AHEAD {
            match rest.try_next().await? {
                Some((message, _)) => items.extend(message.into_items()),
                None => return Ok(Self { first, items, rest: None }),
            }
        }
        Ok(Self { first, items, rest: Some(rest) })
    }

    /// Returns an array of one element, which `compose` makes from the first message.
    pub(crate) fn map_first<R>(self, compose: impl FnOnce(T) -> R) -> StreamedInArray<R, T> {
        StreamedInArray { first: compose(self.first), items: self.items, rest: self.rest }
    }
}

impl<T: StreamedResource> IntoResponse for Streamed<T> {
    fn into_response(self) -> Response {
        const END: &[u8] = b"]}";
        let Self { first, items, rest } = self;
        let (version, link) = (first.data_version(), page_link(&first));
        match (beginning(&first, &items, END), rest) {
            (Ok(mut json), None) => {
                json.extend_from_slice(END);
                ([JSON], link, entity_tag::of_body(version, &json), json).into_response()
            }
            (Ok(open), Some(rest)) => {
                let body = continued(open, rest, END);
                ([JSON], link, entity_tag::unrepeatable(version), body).into_response()
            }
            (Err(error), _) => serialization_error(&error).into_response(),
        }
    }
}

/// A streamed resource as the only element of a JSON array. Its fields before the array may differ
/// from those of the messages.
pub(crate) struct StreamedInArray<R, T: StreamedResource> {
    first: R,
    items: Vec<T::Item>,
    rest: Option<Rest<T>>,
}

impl<R: Serialize, T: StreamedResource> IntoResponse for StreamedInArray<R, T> {
    fn into_response(self) -> Response {
        const END: &[u8] = b"]}]";
        match (beginning(&[&self.first], &self.items, END), self.rest) {
            (Ok(open), None) => ([JSON], [&open, END].concat()).into_response(),
            (Ok(open), Some(rest)) => ([JSON], continued(open, rest, END)).into_response(),
            (Err(error), _) => serialization_error(&error).into_response(),
        }
    }
}

/// Returns the JSON of `first` with further items in its array, up to the end of the array.
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

/// Returns a body of `open` and the items of the remaining messages as they arrive.
fn continued<T: StreamedResource>(open: Vec<u8>, rest: Rest<T>, end: &'static [u8]) -> Body {
    array::body(open, rest.map_ok(|(message, share)| (message.into_items(), share)), end)
}

fn serialization_error(error: &serde_json::Error) -> Problem {
    tracing::error!(%error, "failed to serialize a record as JSON");
    Problem::internal()
}
