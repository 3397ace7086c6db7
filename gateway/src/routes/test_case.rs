//! `/api/projects/{projectId}/testcases`.

use assay_auth::Caller;
use assay_proto::catalog::{
    CreateTestCaseRequest, GetTestCaseRequest, ListTestCasesRequest, TestCase, TestCaseEntry,
    TestCaseInput, UpdateTestCaseRequest,
};
use axum::extract::State;
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    answer::{Answer, Created, Record},
    body::Body,
    list::{List, Listing},
    path::Path,
    problem::Problem,
    services::{Services, TestCases},
    update::{Updatable, Update},
};

pub(super) fn routes() -> OpenApiRouter<Services> {
    OpenApiRouter::new()
        .routes(routes!(list, create))
        .routes(routes!(get, update))
        .routes(routes!(get_permanent))
}

impl Answer for TestCase {
    fn data_version(&self) -> Option<&str> {
        self.data_version.as_deref()
    }
}

impl Updatable for TestCaseInput {}

/// Lists the test cases of a project that are not archived, newest first.
#[utoipa::path(
    get, path = "/api/projects/{projectId}/testcases", operation_id = "list_test_cases",
    tag = "Test cases", params(Listing),
    responses((status = OK, description = "The test cases", body = [TestCaseEntry])),
)]
async fn list(
    State(mut cases): State<TestCases>,
    caller: Caller,
    Path(project_id): Path<String>,
    listing: Listing,
) -> Result<List, Problem> {
    let request = ListTestCasesRequest { project_id, page: Some(listing.page()) };
    let batches = cases.list_test_cases(caller.call(request)).await?;
    listing.answer(batches).await
}

/// Returns a test case with its plans.
#[utoipa::path(
    get, path = "/api/projects/{projectId}/testcases/{testCaseId}",
    operation_id = "get_test_case", tag = "Test cases",
    responses((status = OK, description = "The test case", body = TestCase)),
)]
async fn get(
    State(mut cases): State<TestCases>,
    caller: Caller,
    Path((project_id, id)): Path<(String, String)>,
) -> Result<Record<TestCase>, Problem> {
    let request = GetTestCaseRequest { project_id: Some(project_id), id };
    let case = cases.get_test_case(caller.call(request)).await?;
    Ok(Record(case.into_inner()))
}

/// Returns a test case with its plans, by its permanent URL.
#[utoipa::path(
    get, path = "/api/projects/0/testcases/{testCaseId}",
    operation_id = "get_test_case_permanently", tag = "Test cases",
    responses((status = OK, description = "The test case", body = TestCase)),
)]
async fn get_permanent(
    State(mut cases): State<TestCases>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Record<TestCase>, Problem> {
    let request = GetTestCaseRequest { project_id: None, id };
    let case = cases.get_test_case(caller.call(request)).await?;
    Ok(Record(case.into_inner()))
}

/// Adds a test case to a project.
#[utoipa::path(
    post, path = "/api/projects/{projectId}/testcases", operation_id = "create_test_case",
    tag = "Test cases", request_body = TestCaseInput,
    responses((status = CREATED, description = "The new test case", body = TestCase)),
)]
async fn create(
    State(mut cases): State<TestCases>,
    caller: Caller,
    Path(project_id): Path<String>,
    Body(input): Body<TestCaseInput>,
) -> Result<Created<Record<TestCase>>, Problem> {
    let request = CreateTestCaseRequest { project_id, test_case: Some(input) };
    let case = cases.create_test_case(caller.call(request)).await?.into_inner();
    let location = format!("/api/projects/{}/testcases/{}", case.project_id, case.id);
    Ok(Created(location, Record(case)))
}

/// Changes a test case, or moves it into the archive or out of it.
#[utoipa::path(
    put, path = "/api/projects/{projectId}/testcases/{testCaseId}",
    operation_id = "update_test_case", tag = "Test cases",
    request_body = TestCaseInput,
    responses((status = OK, description = "The changed test case", body = TestCase)),
)]
async fn update(
    State(mut cases): State<TestCases>,
    caller: Caller,
    Path((project_id, id)): Path<(String, String)>,
    Update { changes, fields, data_version }: Update<TestCaseInput>,
) -> Result<Record<TestCase>, Problem> {
    let changes = Some(changes);
    let request = UpdateTestCaseRequest { project_id, id, data_version, changes, fields };
    let case = cases.update_test_case(caller.call(request)).await?;
    Ok(Record(case.into_inner()))
}
