//! `/api/webhooks/…/deliveries`.

use assay_auth::Caller;
use assay_proto::notification::{
    Delivery, DeliveryAttempt, DeliveryStatus, ListDeliveriesRequest, ListDeliveryAttemptsRequest,
    RedeliverFailedRequest, RedeliverRequest, Redelivery,
};
use axum::extract::State;
use serde::Deserialize;
use utoipa::IntoParams;
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    list::{List, Listing},
    path::Path,
    problem::Problem,
    query::Query,
    response::{Json, Resource},
    services::{Services, Webhooks},
};

pub(super) fn routes() -> OpenApiRouter<Services> {
    OpenApiRouter::new()
        .routes(routes!(list))
        .routes(routes!(list_attempts))
        .routes(routes!(redeliver_failed))
        .routes(routes!(redeliver))
}

impl Resource for Delivery {}

impl Resource for DeliveryAttempt {}

impl Resource for Redelivery {}

/// The deliveries to return; all by default.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct Filter {
    /// Return only deliveries with this status.
    status: Option<DeliveryStatus>,
}

/// Lists the deliveries to a webhook, newest first.
#[utoipa::path(
    get, path = "/api/webhooks/{webhookId}/deliveries", operation_id = "list_deliveries",
    tag = "Webhooks", params(Listing, Filter),
    extensions(("x-grpc-method" = json!("/assay.notification.v1.WebhookService/ListDeliveries"))),
    responses((status = OK, description = "The deliveries", body = [Delivery])),
)]
async fn list(
    State(mut webhooks): State<Webhooks>,
    caller: Caller,
    Path(webhook_id): Path<String>,
    listing: Listing,
    Query(Filter { status }): Query<Filter>,
) -> Result<List, Problem> {
    let (page, status) = (Some(listing.page()), status.map(Into::into));
    let request = ListDeliveriesRequest { webhook_id, page, status };
    listing.respond(webhooks.list_deliveries(caller.call(request)).await?).await
}

/// The attempts to return; all by default.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase")]
struct AttemptFilter {
    /// Return only the attempts of this delivery.
    #[param(format = Uuid)]
    delivery_id: Option<String>,
}

/// Lists the last attempts to send deliveries and tests to a webhook, newest first.
///
/// An attempt has its request and the response. The last 20 that succeeded and the last 100 that failed
/// are kept, for seven days.
#[utoipa::path(
    get, path = "/api/webhooks/{webhookId}/attempts", operation_id = "list_delivery_attempts",
    tag = "Webhooks", params(Listing, AttemptFilter),
    extensions(("x-grpc-method" = json!("/assay.notification.v1.WebhookService/ListDeliveryAttempts"))),
    responses((status = OK, description = "The attempts", body = [DeliveryAttempt])),
)]
async fn list_attempts(
    State(mut webhooks): State<Webhooks>,
    caller: Caller,
    Path(webhook_id): Path<String>,
    listing: Listing,
    Query(AttemptFilter { delivery_id }): Query<AttemptFilter>,
) -> Result<List, Problem> {
    let request =
        ListDeliveryAttemptsRequest { webhook_id, page: Some(listing.page()), delivery_id };
    listing.respond(webhooks.list_delivery_attempts(caller.call(request)).await?).await
}

/// Retries all failed deliveries.
#[utoipa::path(
    post, path = "/api/webhooks/{webhookId}/deliveries/redeliver",
    operation_id = "redeliver_failed", tag = "Webhooks",
    extensions(("x-grpc-method" = json!("/assay.notification.v1.WebhookService/RedeliverFailed"))),
    responses((status = OK, description = "The number of deliveries to retry", body = Redelivery)),
)]
async fn redeliver_failed(
    State(mut webhooks): State<Webhooks>,
    caller: Caller,
    Path(webhook_id): Path<String>,
) -> Result<Json<Redelivery>, Problem> {
    let request = RedeliverFailedRequest { webhook_id };
    Ok(Json(webhooks.redeliver_failed(caller.call(request)).await?.into_inner()))
}

/// Repeats a delivery, even if it has succeeded before.
#[utoipa::path(
    post, path = "/api/webhooks/{webhookId}/deliveries/{deliveryId}/redeliver",
    operation_id = "redeliver", tag = "Webhooks",
    extensions(("x-grpc-method" = json!("/assay.notification.v1.WebhookService/Redeliver"))),
    responses((status = OK, description = "The pending delivery", body = Delivery)),
)]
async fn redeliver(
    State(mut webhooks): State<Webhooks>,
    caller: Caller,
    Path((webhook_id, id)): Path<(String, String)>,
) -> Result<Json<Delivery>, Problem> {
    let request = RedeliverRequest { webhook_id, id };
    Ok(Json(webhooks.redeliver(caller.call(request)).await?.into_inner()))
}
