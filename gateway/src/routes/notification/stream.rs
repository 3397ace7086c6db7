//! `/api/notifications/stream`: server-sent events.

use assay_auth::Caller;
use assay_proto::{
    identity::StreamToken,
    notification::{WatchNotificationsRequest, WatchedNotification},
};
use axum::{
    extract::State,
    response::{Response, sse::Event},
};
use futures::StreamExt;
use tonic::Status;
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{
    Filter,
    event::{NotificationEventData, ResetReason, StreamReset, example},
};
use crate::{
    array::Failure,
    caller::{StreamQuery, WatchedCaller},
    event_stream::{self, LastEventId, LastEventQuery},
    problem::Problem,
    query::OnlyQuery,
    response::{Json, Resource},
    services::{Services, Tokens},
};

pub(super) fn routes() -> OpenApiRouter<Services> {
    OpenApiRouter::new().routes(routes!(watch)).routes(routes!(create_token))
}

impl Resource for StreamToken {}

/// Streams new notifications as server-sent events.
///
/// An event has the name `notification`, and the id of the notification. Its data is the CloudEvent that
/// webhooks and subscribers get, whose `data` is the notification. A client that reconnects with the id of
/// the last event in `Last-Event-ID`, as browsers do, misses nothing. If Assay does not know that id, because
/// the notification was removed or the database restored, the first event has the name `reset` and the reason as its
/// data: the client may have missed notifications. The stream ends when the token expires or is revoked, and when the
/// permissions of an API token change. Other parameters than these are rejected.
#[utoipa::path(
    get, path = "/api/notifications/stream", operation_id = "watch_notifications",
    tag = "Notifications", params(Filter, LastEventQuery, StreamQuery, LastEventId),
    extensions(("x-grpc-method" = json!("/assay.notification.v1.NotificationService/WatchNotifications"))),
    responses((
        status = OK, description = "The notifications",
        content((NotificationEventData = "text/event-stream", example = json!(example()))),
    )),
)]
async fn watch(
    State(services): State<Services>,
    watched: WatchedCaller,
    OnlyQuery(filter): OnlyQuery<Filter>,
    LastEventId(last_event_id): LastEventId,
) -> Result<Response, Problem> {
    let filter = Some(filter.into());
    let request = WatchNotificationsRequest { last_event_id, after: None, filter };
    let call = watched.caller.call(request);
    let notifications = services.notification_events().watch_notifications(call).await?;
    Ok(event_stream::respond(notifications.into_inner().map(event), watched))
}

fn event(watched: Result<WatchedNotification, Status>) -> Result<Event, Failure> {
    let WatchedNotification { event, event_id, is_reset, .. } = watched?;
    let sent = event_stream::event().id(event_id);
    if is_reset {
        let data = StreamReset { reason: ResetReason::UnknownLastEventId };
        return Ok(sent.event("reset").json_data(data)?);
    }
    Ok(sent.event("notification").data(event))
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
