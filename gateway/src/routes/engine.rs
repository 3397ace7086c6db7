//! `/api/engines` and `/api/queues`: the engines that ask for work, and the work that waits for them.

use assay_auth::Caller;
use assay_proto::execution::{
    Engine, GetQueueLengthRequest, ListEnginesRequest, ListQueuesRequest, QueueLength, Queues,
};
use axum::extract::State;
use serde::Deserialize;
use utoipa::IntoParams;
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    list::{List, Listing},
    problem::Problem,
    query::Query,
    response::{Json, Resource},
    services::{Engines, Services},
};

pub(super) fn routes() -> OpenApiRouter<Services> {
    OpenApiRouter::new().routes(routes!(list)).routes(routes!(list_queues)).routes(routes!(length))
}

impl Resource for QueueLength {}
impl Resource for Queues {}

/// Lists the engines that have asked for work within the last seven days, with the leases that they
/// hold.
#[utoipa::path(
    get, path = "/api/engines", operation_id = "list_engines", tag = "Automation", params(Listing),
    extensions(("x-grpc-method" = json!("/assay.execution.v1.EngineService/ListEngines"))),
    responses((status = OK, description = "The engines", body = [Engine])),
)]
async fn list(
    State(mut engines): State<Engines>,
    caller: Caller,
    listing: Listing,
) -> Result<List, Problem> {
    let request = ListEnginesRequest { page: Some(listing.page()) };
    listing.respond(engines.list_engines(caller.call(request)).await?).await
}

/// Lists the queues in which work waits for engines, those with the most urgent work first.
#[utoipa::path(
    get, path = "/api/queues", operation_id = "list_queues", tag = "Automation",
    extensions(("x-grpc-method" = json!("/assay.execution.v1.EngineService/ListQueues"))),
    responses((status = OK, description = "The queues", body = Queues)),
)]
async fn list_queues(
    State(mut engines): State<Engines>,
    caller: Caller,
) -> Result<Json<Queues>, Problem> {
    Ok(Json(engines.list_queues(caller.call(ListQueuesRequest {})).await?.into_inner()))
}

/// The engines whose work is counted.
#[derive(Deserialize, IntoParams)]
#[serde(rename_all = "camelCase")]
#[into_params(parameter_in = Query)]
struct Offer {
    /// Target group that the engines name; without one, they get work that needs no label.
    #[param(example = "linux")]
    target_group: Option<String>,
    /// Further labels that they offer, separated by commas.
    #[param(example = "gpu,usb")]
    labels: Option<String>,
    /// Ids of the projects whose work they do, separated by commas; at most 50. Default: all projects.
    #[param(example = "019cade2-11c0-7e81-9ed2-4af6c6434ad2")]
    project_ids: Option<String>,
}

/// Returns how much work waits for engines with certain labels, and how much they do.
///
/// A program that starts engines on demand, such as KEDA, asks for it.
#[utoipa::path(
    get, path = "/api/queues/length", operation_id = "get_queue_length", tag = "Automation",
    params(Offer),
    extensions(("x-grpc-method" = json!("/assay.execution.v1.EngineService/GetQueueLength"))),
    responses((status = OK, description = "The number of tests", body = QueueLength)),
)]
async fn length(
    State(mut engines): State<Engines>,
    caller: Caller,
    Query(Offer { target_group, labels, project_ids }): Query<Offer>,
) -> Result<Json<QueueLength>, Problem> {
    let (labels, project_ids) = (separated(labels), separated(project_ids));
    let request = GetQueueLengthRequest { target_group, labels, project_ids };
    Ok(Json(engines.get_queue_length(caller.call(request)).await?.into_inner()))
}

/// Returns the parts of a text that commas separate.
fn separated(text: Option<String>) -> Vec<String> {
    let text = text.unwrap_or_default();
    text.split(',').filter(|part| !part.is_empty()).map(str::to_owned).collect()
}
