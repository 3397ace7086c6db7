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
    caller::Lasting,
    problem::Problem,
    query::Query,
    services::{Notifications, Services},
};

/// How often a stream without news shows that it is alive.
const ALIVE: Duration = Duration::from_secs(15);

/// How long a client waits until it comes back.
const PAUSE: Duration = Duration::from_secs(2);

/// Keeps proxies of the nginx kind from gathering events before they pass them on.
const UNBUFFERED: (HeaderName, HeaderValue) =
    (HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));

pub(super) fn routes() -> OpenApiRouter<Services> {
    OpenApiRouter::new().routes(routes!(stream))
}

/// The last event that a client has seen, which it tells when it comes back.
#[derive(IntoParams)]
#[into_params(names("Last-Event-ID"), parameter_in = Header)]
struct LastEventId(
    /// The id of the last event that was seen; absent: only what is added from now on
    #[param(example = 42)]
    Option<i64>,
);

impl<S: Sync> FromRequestParts<S> for LastEventId {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let Some(id) = parts.headers.get("last-event-id") else { return Ok(Self(None)) };
        let id = id.to_str().ok().and_then(|id| id.parse().ok());
        let id =
            id.ok_or_else(|| Problem::invalid("Last-Event-ID", "must be the id of an event"))?;
        Ok(Self(Some(id)))
    }
}

/// Answers notifications as they are added, as server-sent events.
///
/// An event is named `notification`, its data is the notification as JSON, and its id says where to
/// go on: a client that comes back with `Last-Event-ID`, as browsers do by themselves, misses
/// nothing. The stream ends when the token expires or is revoked, and when an API token gains or
/// loses permissions.
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
    lasting: Lasting,
    Query(Filter { source, action }): Query<Filter>,
    LastEventId(after): LastEventId,
) -> Result<Response, Problem> {
    let request = lasting.caller.call(WatchNotificationsRequest { after, source, action });
    let watched = notifications.watch_notifications(request).await?.into_inner();
    let events = watched.map(event).take_until(lasting.over());
    let events = Sse::new(events).keep_alive(KeepAlive::new().interval(ALIVE));
    Ok(([UNBUFFERED], events).into_response())
}

fn event(watched: Result<WatchedNotification, Status>) -> Result<Event, Failure> {
    let WatchedNotification { position, notification } = watched?;
    let event = Event::default().id(position.to_string()).event("notification").retry(PAUSE);
    Ok(event.json_data(notification.unwrap_or_default())?)
}
