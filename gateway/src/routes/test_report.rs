//! `…/testreports/{testReportId}`, and the instances of a test report.

mod debug;
mod list;
mod review;

use assay_auth::Caller;
use assay_proto::execution::{
    GetInstanceRequest, GetTestReportRequest, Instance, InstanceEntry, InstanceStatistics,
    ListInstancesRequest, TestReport,
};
use axum::extract::State;
use utoipa_axum::{
    router::{OpenApiRouter, UtoipaMethodRouterExt},
    routes,
};

use crate::{
    list::{List, WithoutSearch},
    path::{Path, ShortRoutes, given, read_only},
    problem::Problem,
    response::{Json, Resource},
    services::{Services, TestReports},
};

pub(super) fn routes() -> OpenApiRouter<Services> {
    OpenApiRouter::new()
        .routes_also_short(routes!(get))
        .merge(review::routes())
        .routes(routes!(get_permanent).map(read_only))
        .merge(debug::routes())
        .merge(list::routes())
        .routes_also_short(routes!(list_instances))
        .routes_also_short(routes!(get_instance))
        .routes_also_short(routes!(get_statistics))
}

impl Resource for TestReport {
    fn data_version(&self) -> Option<&str> {
        Some(&self.data_version)
    }
}

impl Resource for Instance {}

impl Resource for InstanceStatistics {}

/// The ids of a project, a test case, a test plan and a test report.
type ReportPath = (String, String, String, String);

/// The ids of [`ReportPath`] and of an instance.
type InstancePath = (String, String, String, String, String);

fn instance(path: InstancePath) -> GetInstanceRequest {
    let (project_id, test_case_id, test_plan_id, test_report_id, id) = path;
    GetInstanceRequest { project_id, test_case_id, test_plan_id, test_report_id, id }
}

/// Returns a test report.
#[utoipa::path(
    get, tag = "Test reports", operation_id = "get_test_report",
    path = "/api/projects/{projectId}/testcases/{testCaseId}/testplans/{testPlanId}/testreports/{testReportId}",
    extensions(("x-grpc-method" = json!("/assay.execution.v1.TestReportService/GetTestReport"))),
    responses((status = OK, description = "The test report", body = TestReport)),
)]
async fn get(
    State(mut reports): State<TestReports>,
    caller: Caller,
    Path((project_id, test_case_id, test_plan_id, id)): Path<ReportPath>,
) -> Result<Json<TestReport>, Problem> {
    let request = GetTestReportRequest {
        project_id: given(project_id),
        test_case_id: given(test_case_id),
        test_plan_id: given(test_plan_id),
        id,
    };
    let report = reports.get_test_report(caller.call(request)).await?;
    Ok(Json(report.into_inner()))
}

/// Returns a test report, by its permanent URL.
#[utoipa::path(
    get, tag = "Test reports", operation_id = "get_test_report_permanently",
    path = "/api/projects/0/testcases/0/testplans/0/testreports/{testReportId}",
    extensions(("x-grpc-method" = json!("/assay.execution.v1.TestReportService/GetTestReport"))),
    responses((status = OK, description = "The test report", body = TestReport)),
)]
async fn get_permanent(
    State(mut reports): State<TestReports>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<TestReport>, Problem> {
    let request = GetTestReportRequest { id, ..Default::default() };
    let report = reports.get_test_report(caller.call(request)).await?;
    Ok(Json(report.into_inner()))
}

/// Lists the finished instances of a test report, ordered by number.
#[utoipa::path(
    get, tag = "Test reports", operation_id = "list_instances", params(WithoutSearch),
    path = "/api/projects/{projectId}/testcases/{testCaseId}/testplans/{testPlanId}/testreports/{testReportId}/instances",
    extensions(("x-grpc-method" = json!("/assay.execution.v1.TestReportService/ListInstances"))),
    responses((status = OK, description = "The instances", body = [InstanceEntry])),
)]
async fn list_instances(
    State(mut reports): State<TestReports>,
    caller: Caller,
    Path((project_id, test_case_id, test_plan_id, test_report_id)): Path<ReportPath>,
    WithoutSearch(listing): WithoutSearch,
) -> Result<List, Problem> {
    let page = Some(listing.page());
    let request =
        ListInstancesRequest { project_id, test_case_id, test_plan_id, test_report_id, page };
    let batches = reports.list_instances(caller.call(request)).await?;
    listing.respond(batches).await
}

/// Returns an instance of a test report with its steps.
#[utoipa::path(
    get, tag = "Test reports", operation_id = "get_instance",
    path = "/api/projects/{projectId}/testcases/{testCaseId}/testplans/{testPlanId}/testreports/{testReportId}/instances/{instanceId}",
    extensions(("x-grpc-method" = json!("/assay.execution.v1.TestReportService/GetInstance"))),
    responses((status = OK, description = "The instance", body = Instance)),
)]
async fn get_instance(
    State(mut reports): State<TestReports>,
    caller: Caller,
    Path(path): Path<InstancePath>,
) -> Result<Json<Instance>, Problem> {
    let found = reports.get_instance(caller.call(instance(path))).await?;
    Ok(Json(found.into_inner()))
}

/// Returns statistics of the durations of the finished instances of a test report.
#[utoipa::path(
    get, tag = "Test reports", operation_id = "get_instance_statistics",
    path = "/api/projects/{projectId}/testcases/{testCaseId}/testplans/{testPlanId}/testreports/{testReportId}/instances/{instanceId}/stats",
    extensions(("x-grpc-method" = json!("/assay.execution.v1.TestReportService/GetInstanceStatistics"))),
    responses((status = OK, description = "The statistics", body = InstanceStatistics)),
)]
async fn get_statistics(
    State(mut reports): State<TestReports>,
    caller: Caller,
    Path(path): Path<InstancePath>,
) -> Result<Json<InstanceStatistics>, Problem> {
    let statistics = reports.get_instance_statistics(caller.call(instance(path))).await?;
    Ok(Json(statistics.into_inner()))
}
