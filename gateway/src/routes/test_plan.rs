//! `/api/projects/{projectId}/testcases/{testCaseId}/testplans`.

mod automation_steps;

use assay_auth::Caller;
use assay_proto::{
    TestType,
    catalog::{
        CreateTestPlanRequest, GetTestPlanRequest, TestPlan, TestPlanInput,
        TransferTestPlanRequest, UpdateTestPlanRequest,
    },
};
use axum::extract::State;
use utoipa_axum::{
    router::{OpenApiRouter, UtoipaMethodRouterExt},
    routes,
};

use crate::{
    body::Body,
    path::{Path, read_only, shortened},
    problem::Problem,
    response::{Created, Json, Resource},
    services::{Services, TestPlans},
    update::{Updatable, Update},
};

pub(super) fn routes() -> OpenApiRouter<Services> {
    OpenApiRouter::new()
        .routes(routes!(create))
        .routes(routes!(get, update))
        .routes(routes!(get_permanent).map(read_only))
        .routes(shortened(routes!(get_permanent)))
        .routes(routes!(transfer))
        .merge(automation_steps::routes())
}

/// The ids of a project, a test case and a test plan.
type PlanPath = (String, String, String);

impl Resource for TestPlan {
    fn data_version(&self) -> Option<&str> {
        Some(&self.data_version)
    }
}

impl Updatable for TestPlanInput {}

/// Returns a test plan.
#[utoipa::path(
    get, path = "/api/projects/{projectId}/testcases/{testCaseId}/testplans/{testPlanId}",
    operation_id = "get_test_plan", tag = "Test plans",
    extensions(("x-grpc-method" = json!("/assay.catalog.v1.TestPlanService/GetTestPlan"))),
    responses((status = OK, description = "The test plan", body = TestPlan)),
)]
async fn get(
    State(mut plans): State<TestPlans>,
    caller: Caller,
    Path((project_id, test_case_id, id)): Path<PlanPath>,
) -> Result<Json<TestPlan>, Problem> {
    let (project_id, test_case_id) = (Some(project_id), Some(test_case_id));
    let request = GetTestPlanRequest { project_id, test_case_id, id };
    let plan = plans.get_test_plan(caller.call(request)).await?;
    Ok(Json(plan.into_inner()))
}

/// Returns a test plan, by its permanent URL.
#[utoipa::path(
    get, path = "/api/projects/0/testcases/0/testplans/{testPlanId}",
    operation_id = "get_test_plan_permanently", tag = "Test plans",
    extensions(("x-grpc-method" = json!("/assay.catalog.v1.TestPlanService/GetTestPlan"))),
    responses((status = OK, description = "The test plan", body = TestPlan)),
)]
async fn get_permanent(
    State(mut plans): State<TestPlans>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<TestPlan>, Problem> {
    let request = GetTestPlanRequest { project_id: None, test_case_id: None, id };
    let plan = plans.get_test_plan(caller.call(request)).await?;
    Ok(Json(plan.into_inner()))
}

/// Adds a test plan with the next revision to a test case.
#[utoipa::path(
    post, path = "/api/projects/{projectId}/testcases/{testCaseId}/testplans",
    operation_id = "create_test_plan", tag = "Test plans", request_body = TestPlanInput,
    extensions(("x-grpc-method" = json!("/assay.catalog.v1.TestPlanService/CreateTestPlan"))),
    responses((status = CREATED, description = "The new test plan", body = TestPlan)),
)]
async fn create(
    State(mut plans): State<TestPlans>,
    caller: Caller,
    Path((project_id, test_case_id)): Path<(String, String)>,
    Body(input): Body<TestPlanInput>,
) -> Result<Created<Json<TestPlan>>, Problem> {
    let plans_of_case = format!("/api/projects/{project_id}/testcases/{test_case_id}/testplans");
    let request = CreateTestPlanRequest { project_id, test_case_id, test_plan: Some(input) };
    let plan = plans.create_test_plan(caller.call(request)).await?.into_inner();
    Ok(Created(format!("{plans_of_case}/{}", plan.id), Json(plan)))
}

/// Changes a test plan. After it has been executed, only its status and its texts can be changed.
#[utoipa::path(
    put, path = "/api/projects/{projectId}/testcases/{testCaseId}/testplans/{testPlanId}",
    operation_id = "update_test_plan", tag = "Test plans",
    request_body = TestPlanInput,
    extensions(("x-grpc-method" = json!("/assay.catalog.v1.TestPlanService/UpdateTestPlan"))),
    responses((status = OK, description = "The changed test plan", body = TestPlan)),
)]
async fn update(
    State(mut plans): State<TestPlans>,
    caller: Caller,
    Path((project_id, test_case_id, id)): Path<PlanPath>,
    Update { changes, fields, data_version, .. }: Update<TestPlanInput>,
) -> Result<Json<TestPlan>, Problem> {
    let changes = Some(changes);
    let request =
        UpdateTestPlanRequest { project_id, test_case_id, id, data_version, changes, fields };
    let plan = plans.update_test_plan(caller.call(request)).await?;
    Ok(Json(plan.into_inner()))
}

/// Copies a test plan to the next revision, with another type.
///
/// The copy has the variables and automation steps of the plan, and the status `New`.
#[utoipa::path(
    post, tag = "Test plans", operation_id = "transfer_test_plan",
    path = "/api/projects/{projectId}/testcases/{testCaseId}/testplans/{testPlanId}/transfer/{newType}",
    params(("newType" = TestType, Path, description = "The type of the copy")),
    extensions(("x-grpc-method" = json!("/assay.catalog.v1.TestPlanService/TransferTestPlan"))),
    responses((status = CREATED, description = "The new test plan", body = TestPlan)),
)]
async fn transfer(
    State(mut plans): State<TestPlans>,
    caller: Caller,
    Path((project_id, test_case_id, id, new_type)): Path<(String, String, String, String)>,
) -> Result<Created<Json<TestPlan>>, Problem> {
    let plans_of_case = format!("/api/projects/{project_id}/testcases/{test_case_id}/testplans");
    let request = TransferTestPlanRequest { project_id, test_case_id, id, new_type };
    let plan = plans.transfer_test_plan(caller.call(request)).await?.into_inner();
    Ok(Created(format!("{plans_of_case}/{}", plan.id), Json(plan)))
}
