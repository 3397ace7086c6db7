//! `…/executions/{executionId}/reports` and `…/reviews`.

use assay_auth::Caller;
use assay_proto::{
    ReportStatus, ResultChange, TestResult,
    execution::{
        ListTestReportsRequest, ReviewInput, ReviewTestReportsRequest, ReviewedTestReports,
        TestReportEntry,
    },
};
use axum::extract::State;
use serde::Deserialize;
use utoipa::IntoParams;
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    body::Body,
    list::{List, Listing},
    path::{Path, unless_zero},
    problem::Problem,
    query::{Query, unless_empty},
    response::{Json, Resource},
    routes::classification::Classification,
    services::{Services, TestReports},
};

pub(super) fn routes() -> OpenApiRouter<Services> {
    OpenApiRouter::new().routes(routes!(list)).routes(routes!(review))
}

impl Resource for ReviewedTestReports {}

/// The test reports to return; all by default. Empty parameters count as absent.
#[derive(Default, Deserialize, IntoParams)]
#[serde(default)]
#[into_params(parameter_in = Query)]
struct Filter {
    /// Return only test reports with this result.
    #[param(inline, example = "Failed")]
    #[serde(deserialize_with = "unless_empty")]
    result: Option<TestResult>,
    /// Return only test reports with this status.
    #[param(inline, example = "InReview")]
    #[serde(deserialize_with = "unless_empty")]
    status: Option<ReportStatus>,
    /// Return only test reports with this change.
    #[param(inline, example = "New")]
    #[serde(deserialize_with = "unless_empty")]
    change: Option<ResultChange>,
    /// Return only test reports with a failure of this cause.
    #[param(example = "5f0c1a52b7d94e3b8f26d1c07a9e4b63")]
    #[serde(deserialize_with = "unless_empty")]
    fingerprint: Option<String>,
}

/// Lists the test reports of an execution, each with the last results of its test case.
///
/// `0` instead of the id of the project is the permanent URL.
#[utoipa::path(
    get, path = "/api/projects/{projectId}/executions/{executionId}/reports",
    operation_id = "list_test_reports", tag = "Test reports", params(Filter, Classification, Listing),
    extensions(("x-grpc-method" = json!("/assay.execution.v1.TestReportService/ListTestReports"))),
    responses((status = OK, description = "The test reports", body = [TestReportEntry])),
)]
async fn list(
    State(mut reports): State<TestReports>,
    caller: Caller,
    Path((project_id, execution_id)): Path<(String, String)>,
    Query(filter): Query<Filter>,
    Query(classification): Query<Classification>,
    listing: Listing,
) -> Result<List, Problem> {
    let request = ListTestReportsRequest {
        project_id: unless_zero(project_id),
        execution_id,
        result: filter.result.unwrap_or_default().into(),
        status: filter.status.unwrap_or_default().into(),
        change: filter.change.unwrap_or_default().into(),
        fingerprint: filter.fingerprint,
        page: Some(listing.page()),
        classification: classification.filter(),
    };
    let batches = reports.list_test_reports(caller.call(request)).await?;
    listing.respond(batches).await
}

/// Reviews finished test reports of an execution, all or none.
///
/// The body selects the test reports by their ids, by a cause or by their result. With `Known`, their
/// failures are muted in later executions. `0` instead of the id of the project is the permanent URL.
#[utoipa::path(
    put, path = "/api/projects/{projectId}/executions/{executionId}/reviews",
    operation_id = "review_test_reports", tag = "Test reports", request_body = ReviewInput,
    extensions(("x-grpc-method" =
        json!("/assay.execution.v1.TestReportService/ReviewTestReports"))),
    responses((status = OK, description = "The number of reviews", body = ReviewedTestReports)),
)]
async fn review(
    State(mut reports): State<TestReports>,
    caller: Caller,
    Path((project_id, execution_id)): Path<(String, String)>,
    Body(review): Body<ReviewInput>,
) -> Result<Json<ReviewedTestReports>, Problem> {
    let (project_id, review) = (unless_zero(project_id), Some(review));
    let request = ReviewTestReportsRequest { project_id, execution_id, review };
    Ok(Json(reports.review_test_reports(caller.call(request)).await?.into_inner()))
}
