//! `…/executions/{executionId}/reports` and `…/reviews`.

use assay_auth::Caller;
use assay_proto::{
    Page, ReportStatus, ResultChange, TestResult,
    execution::{
        GetPositionRequest, ListTestReportsRequest, ReviewInput, ReviewTestReportsRequest,
        ReviewedTestReports, TestReportEntry, TestReportPosition, UndoReviewRequest,
    },
};
use axum::extract::State;
use http::StatusCode;
use serde::Deserialize;
use utoipa::IntoParams;
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    body::Body,
    list::{List, Listing},
    path::{Path, ShortRoutes, unless_zero},
    problem::Problem,
    query::{Query, unless_empty},
    response::{Json, Resource},
    routes::classification::Classification,
    services::{Services, TestReports},
};

pub(super) fn routes() -> OpenApiRouter<Services> {
    OpenApiRouter::new()
        .routes_also_short(routes!(list))
        .routes_also_short(routes!(get_position))
        .routes_also_short(routes!(review))
        .routes_also_short(routes!(undo))
}

impl Resource for ReviewedTestReports {}

impl Resource for TestReportPosition {}

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
    /// Return only test reports that are muted, or only those that are not.
    #[param(example = false)]
    muted: Option<bool>,
    /// Return only test reports that need a review: those that fail, are not muted and have not been
    /// reviewed.
    #[param(example = false)]
    unreviewed: Option<bool>,
}

impl Filter {
    /// Returns the request for the test reports of an execution.
    fn request(
        self,
        (project_id, execution_id): (String, String),
        classification: Classification,
    ) -> ListTestReportsRequest {
        ListTestReportsRequest {
            project_id: unless_zero(project_id),
            execution_id,
            result: self.result.unwrap_or_default().into(),
            status: self.status.unwrap_or_default().into(),
            change: self.change.unwrap_or_default().into(),
            fingerprint: self.fingerprint,
            page: None,
            classification: classification.filter(),
            muted: self.muted,
            unreviewed: self.unreviewed.unwrap_or_default(),
        }
    }
}

/// Lists the test reports of an execution, each with the last results of its test case.
#[utoipa::path(
    get, path = "/api/projects/{projectId}/executions/{executionId}/reports",
    operation_id = "list_test_reports", tag = "Test reports", params(Filter, Classification, Listing),
    extensions(("x-grpc-method" = json!("/assay.execution.v1.TestReportService/ListTestReports"))),
    responses((status = OK, description = "The test reports", body = [TestReportEntry])),
)]
async fn list(
    State(mut reports): State<TestReports>,
    caller: Caller,
    Path(path): Path<(String, String)>,
    Query(filter): Query<Filter>,
    Query(classification): Query<Classification>,
    listing: Listing,
) -> Result<List, Problem> {
    let page = Some(listing.page());
    let request = ListTestReportsRequest { page, ..filter.request(path, classification) };
    let batches = reports.list_test_reports(caller.call(request)).await?;
    listing.respond(batches).await
}

/// The list in which the test report is. Empty parameters count as absent.
#[derive(Default, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase", default)]
#[into_params(parameter_in = Query)]
struct Order {
    /// Whether test reports with the same cause follow each other, those of the most frequent cause
    /// first. `q` searches in their messages, then.
    #[param(example = true)]
    by_cause: Option<bool>,
    /// Count only test reports whose name or identifier contains this text, ignoring case.
    #[param(example = "pay")]
    #[serde(deserialize_with = "unless_empty")]
    q: Option<String>,
}

/// Returns the position of a test report in a list of those of its execution, and its neighbours.
///
/// The parameters are those of the list. The list need not have the test report.
#[utoipa::path(
    get, operation_id = "get_position", tag = "Test reports",
    path = "/api/projects/{projectId}/executions/{executionId}/reports/{testReportId}/position",
    params(Filter, Classification, Order),
    extensions(("x-grpc-method" = json!("/assay.execution.v1.TestReportService/GetPosition"))),
    responses((status = OK, description = "The position", body = TestReportPosition)),
)]
async fn get_position(
    State(mut reports): State<TestReports>,
    caller: Caller,
    Path((project_id, execution_id, id)): Path<(String, String, String)>,
    Query(filter): Query<Filter>,
    Query(classification): Query<Classification>,
    Query(Order { by_cause, q }): Query<Order>,
) -> Result<Json<TestReportPosition>, Problem> {
    let list = ListTestReportsRequest {
        page: Some(Page { q, ..Page::default() }),
        ..filter.request((project_id, execution_id), classification)
    };
    let by_cause = by_cause.unwrap_or_default();
    let request = GetPositionRequest { list: Some(list), id, by_cause };
    Ok(Json(reports.get_position(caller.call(request)).await?.into_inner()))
}

/// Reviews finished test reports of an execution, all or none.
///
/// The body selects the test reports by their ids and causes, by a cause or by their result. With `Known`, their
/// failures are muted in later executions.
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

/// Takes a review of several test reports back: the test reports and the known failures are as they were before.
///
/// Test reports that have changed since stay as they are. `0` instead of the id of the project is the permanent
/// URL.
#[utoipa::path(
    delete, path = "/api/projects/{projectId}/executions/{executionId}/reviews/{reviewId}",
    operation_id = "undo_review", tag = "Test reports",
    extensions(("x-grpc-method" = json!("/assay.execution.v1.TestReportService/UndoReview"))),
    responses((status = NO_CONTENT, description = "The review has been taken back")),
)]
async fn undo(
    State(mut reports): State<TestReports>,
    caller: Caller,
    Path((project_id, execution_id, id)): Path<(String, String, String)>,
) -> Result<StatusCode, Problem> {
    let request = UndoReviewRequest { project_id: unless_zero(project_id), execution_id, id };
    reports.undo_review(caller.call(request)).await?;
    Ok(StatusCode::NO_CONTENT)
}
