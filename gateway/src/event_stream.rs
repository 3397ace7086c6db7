//! Streams of server-sent events: how they begin, stay open and go on after the last event of a client.

use std::time::Duration;

use axum::{
    extract::FromRequestParts,
    response::{
        IntoResponse, Response, Sse,
        sse::{Event, KeepAlive},
    },
};
use futures::{Stream, StreamExt, stream};
use http::{HeaderName, HeaderValue, request::Parts};
use serde::Deserialize;
use serde_json::{Value, json};
use utoipa::IntoParams;

use crate::{
    array::Failure,
    caller::WatchedCaller,
    problem::Problem,
    query::{Query, unless_empty},
    services::Services,
};

/// Interval of keep-alive comments in a stream without events.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// Delay after which a client reconnects.
const RECONNECT_DELAY: Duration = Duration::from_secs(2);

/// Prevents nginx and similar proxies from buffering events.
const UNBUFFERED: (HeaderName, HeaderValue) =
    (HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));

/// Responds with events until they end, or the access of the caller does.
pub(crate) fn respond(
    events: impl Stream<Item = Result<Event, Failure>> + Send + 'static,
    watched: WatchedCaller,
) -> Response {
    let events = events.take_until(watched.access_ended());
    let events = stream::once(async { Ok(opening()) }).chain(events);
    let events = Sse::new(events).keep_alive(KeepAlive::new().interval(KEEP_ALIVE));
    ([UNBUFFERED], events).into_response()
}

/// The first lines of a stream, which clients do not see as an event. Proxies forward the response with
/// them.
fn opening() -> Event {
    event().comment("open")
}

/// Returns an event without contents.
pub(crate) fn event() -> Event {
    Event::default().retry(RECONNECT_DELAY)
}

/// Returns an event as the document describes it.
pub(crate) fn example(name: &str, id: &str, data: &Value) -> Value {
    json!({"event": name, "id": id, "data": data.to_string()})
}

/// The last event that a reconnecting client has received, as browsers send it.
#[derive(IntoParams)]
#[into_params(names("Last-Event-ID"), parameter_in = Header)]
pub(crate) struct LastEventId(
    /// The `id` of the last received event, after which the stream goes on
    #[param(example = "019cade2-11c0-779f-8491-6e652d066e91")]
    pub(crate) Option<String>,
);

/// The same for clients that cannot send headers. The header takes precedence: a browser sends it when it
/// reconnects to the same URL.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase")]
pub(crate) struct LastEventQuery {
    /// The `id` of the last received event, for clients that cannot send the header
    #[param(example = "019cade2-11c0-779f-8491-6e652d066e91")]
    #[serde(default, deserialize_with = "unless_empty")]
    last_event_id: Option<String>,
}

/// Returns the problem of an id that no event has.
pub(crate) fn unknown_id() -> Problem {
    Problem::invalid("Last-Event-ID", "must be the id of a received event")
}

impl FromRequestParts<Services> for LastEventId {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, services: &Services) -> Result<Self, Problem> {
        let Query(LastEventQuery { last_event_id }) =
            Query::from_request_parts(parts, services).await?;
        let Some(header) = parts.headers.get("last-event-id") else {
            return Ok(Self(last_event_id));
        };
        // A browser sends an empty one after an event with an empty id.
        let text = header.to_str().map_err(|_| unknown_id())?;
        Ok(Self(Some(text.to_owned()).filter(|text| !text.is_empty())))
    }
}
