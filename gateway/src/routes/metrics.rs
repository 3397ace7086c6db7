//! `/api/projects/{projectId}/metrics`.

mod text;

use assay_auth::Caller;
use assay_proto::execution::GetMetricsRequest;
use axum::{
    extract::State,
    response::{IntoResponse, Response},
};
use http::{HeaderValue, header::CONTENT_TYPE};
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    path::Path,
    problem::Problem,
    services::{Metrics, Services},
};

/// The text format of Prometheus.
const TEXT: HeaderValue = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");

pub(super) fn routes() -> OpenApiRouter<Services> {
    OpenApiRouter::new().routes(routes!(get))
}

/// Returns the latest outcomes of the test sets of a project, in the text format of Prometheus.
///
/// They are those of the last ended execution of each test set and environment on the
/// `DefaultBranch` of the project, or without a branch, of the last 90 days: the 100 latest ones.
/// Forbidden unless `ServesMetrics` of the project is true. Prometheus sends an API token as `Authorization: Bearer`.
#[utoipa::path(
    get, path = "/api/projects/{projectId}/metrics", operation_id = "get_metrics",
    tag = "Projects",
    extensions(("x-grpc-method" = json!("/assay.execution.v1.MetricsService/GetMetrics"))),
    responses((status = OK, description = "The metrics", body = String,
        content_type = "text/plain", example = json!(text::EXAMPLE))),
)]
async fn get(
    State(mut metrics): State<Metrics>,
    caller: Caller,
    Path(project_id): Path<String>,
) -> Result<Response, Problem> {
    let metrics = metrics.get_metrics(caller.call(GetMetricsRequest { project_id })).await?;
    Ok(([(CONTENT_TYPE, TEXT)], text::of(&metrics.into_inner())).into_response())
}
