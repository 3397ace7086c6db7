//! `/api/notifications/stream`: server-sent events.

use std::time::Duration;

use assay_proto::notification::{Notification, WatchNotificationsRequest, WatchedNotification};
use axum::{
    extract::{FromRequestParts, State},
    response::{
        IntoResponse, Response, Sse,
        sse::{Event, KeepAlive},
    },
};
use futures::StreamExt;
use http::{HeaderName, HeaderValue, request::Parts};
use tonic::Status;
use utoipa::IntoParams;
use utoipa_axum::{router::OpenApiRouter, routes};

use super::Filter;
use crate::{
    array::Failure,
    caller::WatchedCaller,
    problem::Problem,
    query::Query,
    services::{Notifications, Services},
};

/// Interval of keep-alive comments in a stream without events.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// Delay after which a client reconnects.
const RECONNECT_DELAY: Duration = Duration::from_secs(2);

/// Prevents nginx and similar proxies from buffering events.
const UNBUFFERED: (HeaderName, HeaderValue) =
    (HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));

pub(super) fn routes() -> OpenApiRouter<Services> {
    OpenApiRouter::new().routes(routes!(stream))
}

/// The last event that a reconnecting client has received.
#[derive(IntoParams)]
#[into_params(names("Last-Event-ID"), parameter_in = Header)]
struct LastEventId(
    /// The id of the last received event; without it, only new notifications are sent
    #[param(value_type = Option<String>, example = "42")]
    Option<i64>,
);

impl<S: Sync> FromRequestParts<S> for LastEventId {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let Some(id) = parts.headers.get("last-event-id") else { return Ok(Self(None)) };
        let id = id.to_str().ok().and_then(|id| id.parse().ok());
        let id = id.ok_or_else(|| {
            Problem::invalid("Last-Event-ID", "must be the id of a received event, a whole number")
        })?;
        Ok(Self(Some(id)))
    }
}

/// Streams new notifications as server-sent events.
///
/// An event has the name `notification` and the notification as JSON in its data. A client that
/// reconnects with the id of the last event in `Last-Event-ID`, as browsers do, misses nothing. The
/// stream ends when the token expires or is revoked, and when the permissions of an API token
/// change.
#[utoipa::path(
    get, path = "/api/notifications/stream", operation_id = "watch_notifications",
    tag = "Notifications", params(Filter, LastEventId),
    extensions(("x-grpc-method" = json!("/assay.notification.v1.NotificationService/WatchNotifications"))),
    responses((
        status = OK, description = "The notifications",
        content((Notification = "text/event-stream")),
    )),
)]
async fn stream(
    State(mut notifications): State<Notifications>,
    watched: WatchedCaller,
    Query(Filter { source, action }): Query<Filter>,
    LastEventId(after): LastEventId,
) -> Result<Response, Problem> {
    let request = watched.caller.call(WatchNotificationsRequest { after, source, action });
    let notifications = notifications.watch_notifications(request).await?.into_inner();
    let events = notifications.map(event).take_until(watched.access_ended());
    let events = Sse::new(events).keep_alive(KeepAlive::new().interval(KEEP_ALIVE));
    Ok(([UNBUFFERED], events).into_response())
}

fn event(watched: Result<WatchedNotification, Status>) -> Result<Event, Failure> {
    let WatchedNotification { position, notification } = watched?;
    let event =
        Event::default().id(position.to_string()).event("notification").retry(RECONNECT_DELAY);
    Ok(event.json_data(notification.unwrap_or_default())?)
}
