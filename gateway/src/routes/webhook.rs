//! `/api/webhooks`.

mod delivery;

use assay_auth::Caller;
use assay_proto::notification::{
    CreateWebhookRequest, DeleteWebhookRequest, DeliveryAttempt, GetWebhookRequest,
    ListWebhooksRequest, TestWebhookRequest, UpdateWebhookRequest, Webhook, WebhookInput,
};
use axum::extract::State;
use http::StatusCode;
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    body::Body,
    list::{List, Listing},
    path::Path,
    problem::Problem,
    response::{Created, Json, Resource},
    services::{Services, Webhooks},
    update::{Updatable, Update},
};

pub(super) fn routes() -> OpenApiRouter<Services> {
    OpenApiRouter::new()
        .routes(routes!(list, create))
        .routes(routes!(get, update, delete))
        .routes(routes!(test))
        .merge(delivery::routes())
}

impl Resource for Webhook {
    fn data_version(&self) -> Option<&str> {
        Some(&self.data_version)
    }
}

impl Updatable for WebhookInput {}

/// Lists the webhooks, including archived ones, newest first.
#[utoipa::path(
    get, path = "/api/webhooks", operation_id = "list_webhooks", tag = "Webhooks",
    params(Listing),
    extensions(("x-grpc-method" = json!("/assay.notification.v1.WebhookService/ListWebhooks"))),
    responses((status = OK, description = "The webhooks", body = [Webhook])),
)]
async fn list(
    State(mut webhooks): State<Webhooks>,
    caller: Caller,
    listing: Listing,
) -> Result<List, Problem> {
    let request = ListWebhooksRequest { page: Some(listing.page()) };
    listing.respond(webhooks.list_webhooks(caller.call(request)).await?).await
}

/// Adds a webhook: an HTTP endpoint that receives notifications.
///
/// Each notification is sent by POST as a CloudEvents event with a signature as specified by
/// Standard Webhooks. It is retried for about a day until the endpoint returns a status from 200 to
/// 299. Only this response shows the secret.
#[utoipa::path(
    post, path = "/api/webhooks", operation_id = "create_webhook", tag = "Webhooks",
    request_body = WebhookInput,
    extensions(("x-grpc-method" = json!("/assay.notification.v1.WebhookService/CreateWebhook"))),
    responses((status = CREATED, description = "The new webhook", body = Webhook)),
)]
async fn create(
    State(mut webhooks): State<Webhooks>,
    caller: Caller,
    Body(input): Body<WebhookInput>,
) -> Result<Created<Json<Webhook>>, Problem> {
    let request = CreateWebhookRequest { webhook: Some(input) };
    let webhook = webhooks.create_webhook(caller.call(request)).await?.into_inner();
    Ok(Created(format!("/api/webhooks/{}", webhook.id), Json(webhook)))
}

/// Returns a webhook.
#[utoipa::path(
    get, path = "/api/webhooks/{webhookId}", operation_id = "get_webhook", tag = "Webhooks",
    extensions(("x-grpc-method" = json!("/assay.notification.v1.WebhookService/GetWebhook"))),
    responses((status = OK, description = "The webhook", body = Webhook)),
)]
async fn get(
    State(mut webhooks): State<Webhooks>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<Webhook>, Problem> {
    let webhook = webhooks.get_webhook(caller.call(GetWebhookRequest { id })).await?;
    Ok(Json(webhook.into_inner()))
}

/// Changes a webhook, or moves it into the archive or out of it. An archived webhook receives
/// nothing.
///
/// An empty `Secret` generates a new one, which the response shows.
#[utoipa::path(
    put, path = "/api/webhooks/{webhookId}", operation_id = "update_webhook", tag = "Webhooks",
    request_body = WebhookInput,
    extensions(("x-grpc-method" = json!("/assay.notification.v1.WebhookService/UpdateWebhook"))),
    responses((status = OK, description = "The changed webhook", body = Webhook)),
)]
async fn update(
    State(mut webhooks): State<Webhooks>,
    caller: Caller,
    Path(id): Path<String>,
    Update { changes, fields, data_version, .. }: Update<WebhookInput>,
) -> Result<Json<Webhook>, Problem> {
    let request = UpdateWebhookRequest { id, data_version, changes: Some(changes), fields };
    Ok(Json(webhooks.update_webhook(caller.call(request)).await?.into_inner()))
}

/// Deletes a webhook with its deliveries.
#[utoipa::path(
    delete, path = "/api/webhooks/{webhookId}", operation_id = "delete_webhook", tag = "Webhooks",
    extensions(("x-grpc-method" = json!("/assay.notification.v1.WebhookService/DeleteWebhook"))),
    responses((status = NO_CONTENT, description = "The webhook has been deleted")),
)]
async fn delete(
    State(mut webhooks): State<Webhooks>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<StatusCode, Problem> {
    webhooks.delete_webhook(caller.call(DeleteWebhookRequest { id })).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Sends a test to a webhook, and returns the attempt.
///
/// The test is signed like a delivery. Its `type` is `io.assay.notifications.webhook.tested.v1`. It is sent
/// once, within ten seconds, also to an archived webhook, and does not count for its health. The answer is
/// 200 whatever the receiver has responded: `Error` says whether the attempt failed.
#[utoipa::path(
    post, path = "/api/webhooks/{webhookId}/test", operation_id = "test_webhook", tag = "Webhooks",
    extensions(("x-grpc-method" = json!("/assay.notification.v1.WebhookService/TestWebhook"))),
    responses((status = OK, description = "The attempt", body = DeliveryAttempt)),
)]
async fn test(
    State(mut webhooks): State<Webhooks>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<DeliveryAttempt>, Problem> {
    let attempt = webhooks.test_webhook(caller.call(TestWebhookRequest { id })).await?;
    Ok(Json(attempt.into_inner()))
}
