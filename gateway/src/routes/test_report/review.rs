//! Reviews of test reports.

use assay_auth::Caller;
use assay_proto::execution::{TestReport, TestReportInput, UpdateTestReportRequest};
use axum::extract::State;
use utoipa_axum::{router::OpenApiRouter, routes};

use super::ReportPath;
use crate::{
    path::{Path, ShortRoutes},
    problem::Problem,
    response::Json,
    services::{Services, TestReports},
    update::{Updatable, Update},
};

pub(super) fn routes() -> OpenApiRouter<Services> {
    OpenApiRouter::new().routes_also_short(routes!(update))
}

impl Updatable for TestReportInput {}

/// Reviews a finished test report: changes its status or its comment.
///
/// `Accepted` needs the permission `Accept`, `Rejected` the permission `Reject`.
#[utoipa::path(
    put, tag = "Test reports", operation_id = "update_test_report",
    path = "/api/projects/{projectId}/testcases/{testCaseId}/testplans/{testPlanId}/testreports/{testReportId}",
    request_body = TestReportInput,
    extensions(("x-grpc-method" = json!("/assay.execution.v1.TestReportService/UpdateTestReport"))),
    responses((status = OK, description = "The reviewed test report", body = TestReport)),
)]
async fn update(
    State(mut reports): State<TestReports>,
    caller: Caller,
    Path((project_id, test_case_id, test_plan_id, id)): Path<ReportPath>,
    Update { changes, fields, data_version, .. }: Update<TestReportInput>,
) -> Result<Json<TestReport>, Problem> {
    let request = UpdateTestReportRequest {
        project_id,
        test_case_id,
        test_plan_id,
        id,
        data_version,
        changes: Some(changes),
        fields,
    };
    let report = reports.update_test_report(caller.call(request)).await?;
    Ok(Json(report.into_inner()))
}
