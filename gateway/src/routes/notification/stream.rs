//! `/api/notifications/stream`: server-sent events.

use std::time::Duration;

use assay_auth::Caller;
use assay_proto::{
    identity::StreamToken,
    notification::{Notification, WatchNotificationsRequest, WatchedNotification},
};
use axum::{
    extract::{FromRequestParts, State},
    response::{
        IntoResponse, Response, Sse,
        sse::{Event, KeepAlive},
    },
};
use futures::{StreamExt, stream};
use http::{HeaderName, HeaderValue, request::Parts};
use serde::Deserialize;
use serde_json::json;
use tonic::Status;
use utoipa::IntoParams;
use utoipa_axum::{router::OpenApiRouter, routes};

use super::Filter;
use crate::{
    array::Failure,
    caller::{StreamQuery, WatchedCaller},
    problem::Problem,
    query::{Query, unless_empty},
    response::{Json, Resource},
    services::{Notifications, Services, Tokens},
};

/// Interval of keep-alive comments in a stream without events.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// Delay after which a client reconnects.
const RECONNECT_DELAY: Duration = Duration::from_secs(2);

/// Prevents nginx and similar proxies from buffering events.
const UNBUFFERED: (HeaderName, HeaderValue) =
    (HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));

pub(super) fn routes() -> OpenApiRouter<Services> {
    OpenApiRouter::new().routes(routes!(watch)).routes(routes!(create_token))
}

impl Resource for StreamToken {}

/// The last event that a reconnecting client has received, as browsers send it.
#[derive(IntoParams)]
#[into_params(names("Last-Event-ID"), parameter_in = Header)]
struct LastEventId(
    /// The `id` of the last received event; without it, only new notifications are sent
    #[param(example = "019cade2-11c0-779f-8491-6e652d066e91")]
    Option<String>,
);

/// The same for clients that cannot send headers. The header takes precedence: a browser sends it when it
/// reconnects to the same URL.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase")]
struct LastEventQuery {
    /// The `id` of the last received event, for clients that cannot send the header
    #[param(example = "019cade2-11c0-779f-8491-6e652d066e91")]
    #[serde(default, deserialize_with = "unless_empty")]
    last_event_id: Option<String>,
}

impl<S: Sync> FromRequestParts<S> for LastEventId {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let Query(LastEventQuery { last_event_id }) =
            Query::from_request_parts(parts, state).await?;
        let Some(header) = parts.headers.get("last-event-id") else {
            return Ok(Self(last_event_id));
        };
        // A browser sends an empty one after an event with an empty id.
        let text = header
            .to_str()
            .map_err(|_| Problem::invalid("Last-Event-ID", "must be the id of a received event"))?;
        Ok(Self(Some(text.to_owned()).filter(|text| !text.is_empty())))
    }
}

/// Streams new notifications as server-sent events.
///
/// An event has the name `notification`, the notification as JSON in its data and its id. A client that
/// reconnects with the id of the last event in `Last-Event-ID`, as browsers do, misses nothing. If Assay
/// does not know that id, because the notification was removed or the database restored, the first event has
/// the name `reset`: the client may have missed notifications. The stream ends when the token expires or
/// is revoked, and when the permissions of an API token change.
#[utoipa::path(
    get, path = "/api/notifications/stream", operation_id = "watch_notifications",
    tag = "Notifications", params(Filter, LastEventQuery, StreamQuery, LastEventId),
    extensions(("x-grpc-method" = json!("/assay.notification.v1.NotificationService/WatchNotifications"))),
    responses((
        status = OK, description = "The notifications",
        content((Notification = "text/event-stream")),
    )),
)]
async fn watch(
    State(mut notifications): State<Notifications>,
    watched: WatchedCaller,
    Query(Filter { source, action }): Query<Filter>,
    LastEventId(last_event_id): LastEventId,
) -> Result<Response, Problem> {
    let request = WatchNotificationsRequest { last_event_id, after: None, source, action };
    let notifications = notifications.watch_notifications(watched.caller.call(request)).await?;
    let events = notifications.into_inner().map(event).take_until(watched.access_ended());
    let events = stream::once(async { Ok(opening()) }).chain(events);
    let events = Sse::new(events).keep_alive(KeepAlive::new().interval(KEEP_ALIVE));
    Ok(([UNBUFFERED], events).into_response())
}

/// The first lines of a stream, which clients do not see as an event. Proxies forward the response with
/// them.
fn opening() -> Event {
    Event::default().retry(RECONNECT_DELAY).comment("open")
}

fn event(watched: Result<WatchedNotification, Status>) -> Result<Event, Failure> {
    let WatchedNotification { notification, event_id, is_reset, .. } = watched?;
    let event = Event::default().id(event_id).retry(RECONNECT_DELAY);
    if is_reset {
        let data = json!({ "Reason": "UnknownLastEventId" });
        return Ok(event.event("reset").json_data(data)?);
    }
    Ok(event.event("notification").json_data(notification.unwrap_or_default())?)
}

/// Creates a token for streams, for clients that cannot send headers.
///
/// `EventSource` of browsers has no headers: it sends this token in the query parameter `token`. It is valid
/// for ten minutes and for streams of this customer only, and is revoked with the token of this request.
/// A stream that it has opened ends when it expires; continue with another one and `lastEventId`.
#[utoipa::path(
    post, path = "/api/notifications/stream/token", operation_id = "create_stream_token",
    tag = "Notifications",
    extensions(("x-grpc-method" = json!("/assay.identity.v1.TokenService/CreateStreamToken"))),
    responses((status = OK, description = "The token", body = StreamToken)),
)]
async fn create_token(
    State(mut tokens): State<Tokens>,
    caller: Caller,
) -> Result<Json<StreamToken>, Problem> {
    Ok(Json(tokens.create_stream_token(caller.call(())).await?.into_inner()))
}
