//! `/api/shared/{token}`: an execution for readers with its share link.

use assay_auth::anonymous;
use assay_proto::{
    ResultChange, TestResult,
    execution::{
        GetSharedExecutionRequest, GetSharedInstanceRequest, ListSharedFailuresRequest,
        ListSharedReportsRequest, SharedExecution, SharedFailure, SharedInstance, SharedReport,
    },
};
use axum::{
    extract::State,
    response::{IntoResponse, Response},
};
use http::header::CONTENT_TYPE;
use serde::Deserialize;
use utoipa::IntoParams;
use utoipa_axum::{router::OpenApiRouter, routes};

use super::execution::verdict::{SVG, badge};
use crate::{
    list::{List, Listing},
    path::Path,
    problem::Problem,
    query::{Query, unless_empty},
    response::{Json, Resource},
    services::{Services, SharedExecutions},
};

pub(super) fn routes() -> OpenApiRouter<Services> {
    OpenApiRouter::new()
        .routes(routes!(get))
        .routes(routes!(get_badge))
        .routes(routes!(list_failures))
        .routes(routes!(list_reports))
        .routes(routes!(get_instance))
}

impl Resource for SharedExecution {}

impl Resource for SharedInstance {}

/// Returns the outcome of a shared execution.
#[utoipa::path(
    get, path = "/api/shared/{token}", operation_id = "get_shared_execution", tag = "Share links",
    extensions(("x-grpc-method" =
        json!("/assay.execution.v1.SharedExecutionService/GetSharedExecution"))),
    responses((status = OK, description = "The outcome", body = SharedExecution)),
)]
async fn get(
    State(mut shared): State<SharedExecutions>,
    Path(token): Path<String>,
) -> Result<Json<SharedExecution>, Problem> {
    let request = anonymous(GetSharedExecutionRequest { token });
    Ok(Json(shared.get_shared_execution(request).await?.into_inner()))
}

/// Returns the verdict of a shared execution as a badge.
#[utoipa::path(
    get, path = "/api/shared/{token}/badge.svg", operation_id = "get_shared_badge",
    tag = "Share links",
    extensions(("x-grpc-method" =
        json!("/assay.execution.v1.SharedExecutionService/GetSharedExecution"))),
    responses((status = OK, description = "The badge", body = String,
        content_type = "image/svg+xml", example = json!(badge::EXAMPLE))),
)]
async fn get_badge(
    State(mut shared): State<SharedExecutions>,
    Path(token): Path<String>,
) -> Result<Response, Problem> {
    let request = anonymous(GetSharedExecutionRequest { token });
    let execution = shared.get_shared_execution(request).await?.into_inner();
    Ok(([(CONTENT_TYPE, SVG)], badge::of(execution.verdict())).into_response())
}

/// The causes to return.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct FailureFilter {
    /// Count only test cases with this change, such as those that are `New`.
    #[param(inline, example = "New")]
    #[serde(default, deserialize_with = "unless_empty")]
    change: Option<ResultChange>,
    /// Count only test cases that are muted, or only those that are not.
    #[param(example = false)]
    muted: Option<bool>,
}

/// Lists the causes of the failures of a shared execution, those with the most test cases first.
#[utoipa::path(
    get, path = "/api/shared/{token}/failures", operation_id = "list_shared_failures",
    tag = "Share links",
    params(FailureFilter, Listing),
    extensions(("x-grpc-method" =
        json!("/assay.execution.v1.SharedExecutionService/ListSharedFailures"))),
    responses((status = OK, description = "The causes", body = [SharedFailure])),
)]
async fn list_failures(
    State(mut shared): State<SharedExecutions>,
    Path(token): Path<String>,
    Query(filter): Query<FailureFilter>,
    listing: Listing,
) -> Result<List, Problem> {
    let request = ListSharedFailuresRequest {
        token,
        change: filter.change.unwrap_or_default().into(),
        page: Some(listing.page()),
        muted: filter.muted,
    };
    listing.respond(shared.list_shared_failures(anonymous(request)).await?).await
}

/// The test reports to return; all by default. Empty parameters count as absent.
#[derive(Default, Deserialize, IntoParams)]
#[serde(default)]
#[into_params(parameter_in = Query)]
struct ReportFilter {
    /// Return only test reports with this result.
    #[param(inline, example = "Failed")]
    #[serde(deserialize_with = "unless_empty")]
    result: Option<TestResult>,
    /// Return only test reports with this change.
    #[param(inline, example = "New")]
    #[serde(deserialize_with = "unless_empty")]
    change: Option<ResultChange>,
    /// Return only test reports with a failure of this cause.
    #[param(example = "5f0c1a52b7d94e3b8f26d1c07a9e4b63")]
    #[serde(deserialize_with = "unless_empty")]
    fingerprint: Option<String>,
    /// Return only test reports that are muted, or only those that are not.
    #[param(example = false)]
    muted: Option<bool>,
}

/// Lists the test reports of a shared execution, in the order of its test set.
#[utoipa::path(
    get, path = "/api/shared/{token}/reports", operation_id = "list_shared_reports",
    tag = "Share links",
    params(ReportFilter, Listing),
    extensions(("x-grpc-method" =
        json!("/assay.execution.v1.SharedExecutionService/ListSharedReports"))),
    responses((status = OK, description = "The test reports", body = [SharedReport])),
)]
async fn list_reports(
    State(mut shared): State<SharedExecutions>,
    Path(token): Path<String>,
    Query(filter): Query<ReportFilter>,
    listing: Listing,
) -> Result<List, Problem> {
    let request = ListSharedReportsRequest {
        token,
        result: filter.result.unwrap_or_default().into(),
        change: filter.change.unwrap_or_default().into(),
        fingerprint: filter.fingerprint,
        page: Some(listing.page()),
        muted: filter.muted,
    };
    listing.respond(shared.list_shared_reports(anonymous(request)).await?).await
}

/// The instance to return.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct InstanceNumber {
    /// The number of the instance; by default the first that fails, or else the first.
    #[param(example = 1)]
    instance: Option<i32>,
}

/// Returns a test report of a shared execution, with the steps of one of its instances.
#[utoipa::path(
    get, path = "/api/shared/{token}/reports/{testReportId}",
    operation_id = "get_shared_instance", tag = "Share links",
    params(InstanceNumber),
    extensions(("x-grpc-method" =
        json!("/assay.execution.v1.SharedExecutionService/GetSharedInstance"))),
    responses((status = OK, description = "The instance", body = SharedInstance)),
)]
async fn get_instance(
    State(mut shared): State<SharedExecutions>,
    Path((token, test_report_id)): Path<(String, String)>,
    Query(InstanceNumber { instance }): Query<InstanceNumber>,
) -> Result<Json<SharedInstance>, Problem> {
    let request = GetSharedInstanceRequest { token, test_report_id, instance_nr: instance };
    Ok(Json(shared.get_shared_instance(anonymous(request)).await?.into_inner()))
}
