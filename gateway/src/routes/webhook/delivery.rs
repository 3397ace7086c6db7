//! `/api/webhooks/…/deliveries`.

use assay_auth::Caller;
use assay_proto::notification::{
    Delivery, DeliveryStatus, ListDeliveriesRequest, RedeliverFailedRequest, RedeliverRequest,
    Redelivery,
};
use axum::extract::State;
use serde::Deserialize;
use utoipa::IntoParams;
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    answer::{Answer, Record},
    list::{List, Listing},
    path::Path,
    problem::Problem,
    query::Query,
    services::{Services, Webhooks},
};

pub(super) fn routes() -> OpenApiRouter<Services> {
    OpenApiRouter::new()
        .routes(routes!(list))
        .routes(routes!(redeliver_failed))
        .routes(routes!(redeliver))
}

impl Answer for Delivery {}

impl Answer for Redelivery {}

/// Which deliveries a client wants to see.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct Filter {
    /// Only those that stand there.
    status: Option<DeliveryStatus>,
}

/// Lists what a webhook was to be sent, newest first.
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
    listing.answer(webhooks.list_deliveries(caller.call(request)).await?).await
}

/// Has all deliveries made again that have failed.
#[utoipa::path(
    post, path = "/api/webhooks/{webhookId}/deliveries/redeliver",
    operation_id = "redeliver_failed", tag = "Webhooks",
    extensions(("x-grpc-method" = json!("/assay.notification.v1.WebhookService/RedeliverFailed"))),
    responses((status = OK, description = "How many deliveries are made again", body = Redelivery)),
)]
async fn redeliver_failed(
    State(mut webhooks): State<Webhooks>,
    caller: Caller,
    Path(webhook_id): Path<String>,
) -> Result<Record<Redelivery>, Problem> {
    let request = RedeliverFailedRequest { webhook_id };
    Ok(Record(webhooks.redeliver_failed(caller.call(request)).await?.into_inner()))
}

/// Has a delivery made again, whatever came of it before.
#[utoipa::path(
    post, path = "/api/webhooks/{webhookId}/deliveries/{deliveryId}/redeliver",
    operation_id = "redeliver", tag = "Webhooks",
    extensions(("x-grpc-method" = json!("/assay.notification.v1.WebhookService/Redeliver"))),
    responses((status = OK, description = "The delivery, which is pending", body = Delivery)),
)]
async fn redeliver(
    State(mut webhooks): State<Webhooks>,
    caller: Caller,
    Path((webhook_id, id)): Path<(String, String)>,
) -> Result<Record<Delivery>, Problem> {
    let request = RedeliverRequest { webhook_id, id };
    Ok(Record(webhooks.redeliver(caller.call(request)).await?.into_inner()))
}
