//! `/api/projects/{projectId}/testcases`.

mod aliases;
mod export;
mod import;

use assay_auth::Caller;
use assay_proto::{
    ClassificationFilter,
    catalog::{
        DeleteTestCaseRequest, ListFilter, ListTestCasesRequest, TestCase, TestCaseEntry,
        TestCaseInput, UpdateTestCaseRequest,
    },
};
use axum::extract::State;
use http::StatusCode;
use utoipa_axum::{
    router::{OpenApiRouter, UtoipaMethodRouterExt},
    routes,
};

use crate::{
    body::Body,
    gathered::CaseCalls,
    list::{List, Listing},
    path::{Path, read_only, shortened},
    problem::Problem,
    query::Query,
    response::{Created, Json, Resource},
    routes::classification::Classification,
    services::{Services, TestCases},
    update::{Updatable, Update},
};

pub(super) fn routes() -> OpenApiRouter<Services> {
    OpenApiRouter::new()
        .routes(routes!(list, create))
        .routes(routes!(list_archived))
        .routes(routes!(list_favorites))
        .routes(routes!(list_recent))
        .routes(routes!(list_never_run))
        .routes(routes!(get, update, delete))
        .routes(routes!(get_permanent).map(read_only))
        .routes(shortened(routes!(get_permanent)))
        .merge(aliases::routes())
        .merge(export::routes())
}

pub(super) use self::import::routes as import_routes;

impl Resource for TestCase {
    fn data_version(&self) -> Option<&str> {
        self.data_version.as_deref()
    }
}

impl Updatable for TestCaseInput {}

/// Lists the test cases of a project that are not archived, newest first.
#[utoipa::path(
    get, path = "/api/projects/{projectId}/testcases", operation_id = "list_test_cases",
    tag = "Test cases", params(Classification, Listing),
    extensions(("x-grpc-method" = json!("/assay.catalog.v1.TestCaseService/BatchListTestCases"))),
    responses((status = OK, description = "The test cases", body = [TestCaseEntry])),
)]
async fn list(
    State(cases): State<TestCases>,
    State(calls): State<CaseCalls>,
    caller: Caller,
    Path(project_id): Path<String>,
    Query(classification): Query<Classification>,
    listing: Listing,
) -> Result<List, Problem> {
    let classification = classification.filter();
    if classification.is_none()
        && let Some(page) = listing.usual_page()
        && let Some(page) = calls.list(caller.clone(), project_id.clone(), page).await?
    {
        return Ok(listing.respond_with(page));
    }
    list_of(cases, &caller, project_id, classification, listing, ListFilter::Unspecified).await
}

/// Lists the test cases of a project that are in the archive, newest first.
#[utoipa::path(
    get, path = "/api/projects/{projectId}/testcases/archive",
    operation_id = "list_test_cases_in_archive", tag = "Test cases", params(Classification, Listing),
    extensions(("x-grpc-method" = json!("/assay.catalog.v1.TestCaseService/ListTestCases"))),
    responses((status = OK, description = "The test cases", body = [TestCaseEntry])),
)]
async fn list_archived(
    State(cases): State<TestCases>,
    caller: Caller,
    Path(project_id): Path<String>,
    Query(classification): Query<Classification>,
    listing: Listing,
) -> Result<List, Problem> {
    list_of(cases, &caller, project_id, classification.filter(), listing, ListFilter::Archive).await
}

/// Lists the test cases of a project that are favorites of the caller, newest first.
///
/// Archived items are excluded.
#[utoipa::path(
    get, path = "/api/projects/{projectId}/testcases/favorites",
    operation_id = "list_test_cases_in_favorites", tag = "Test cases", params(Classification, Listing),
    extensions(("x-grpc-method" = json!("/assay.catalog.v1.TestCaseService/ListTestCases"))),
    responses((status = OK, description = "The test cases", body = [TestCaseEntry])),
)]
async fn list_favorites(
    State(cases): State<TestCases>,
    caller: Caller,
    Path(project_id): Path<String>,
    Query(classification): Query<Classification>,
    listing: Listing,
) -> Result<List, Problem> {
    list_of(cases, &caller, project_id, classification.filter(), listing, ListFilter::Favorites)
        .await
}

/// Lists the twenty test cases of a project that the caller opened most recently, latest first.
#[utoipa::path(
    get, path = "/api/projects/{projectId}/testcases/recent",
    operation_id = "list_test_cases_recent", tag = "Test cases", params(Classification, Listing),
    extensions(("x-grpc-method" = json!("/assay.catalog.v1.TestCaseService/ListTestCases"))),
    responses((status = OK, description = "The test cases", body = [TestCaseEntry])),
)]
async fn list_recent(
    State(cases): State<TestCases>,
    caller: Caller,
    Path(project_id): Path<String>,
    Query(classification): Query<Classification>,
    listing: Listing,
) -> Result<List, Problem> {
    list_of(cases, &caller, project_id, classification.filter(), listing, ListFilter::Recent).await
}

/// Lists the test cases of a project that no execution has finished, newest first.
///
/// Archived items are excluded.
#[utoipa::path(
    get, path = "/api/projects/{projectId}/testcases/neverrun",
    operation_id = "list_test_cases_never_run", tag = "Test cases", params(Classification, Listing),
    extensions(("x-grpc-method" = json!("/assay.catalog.v1.TestCaseService/ListTestCases"))),
    responses((status = OK, description = "The test cases", body = [TestCaseEntry])),
)]
async fn list_never_run(
    State(cases): State<TestCases>,
    caller: Caller,
    Path(project_id): Path<String>,
    Query(classification): Query<Classification>,
    listing: Listing,
) -> Result<List, Problem> {
    list_of(cases, &caller, project_id, classification.filter(), listing, ListFilter::NeverRun)
        .await
}

async fn list_of(
    mut cases: TestCases,
    caller: &Caller,
    project_id: String,
    classification: Option<ClassificationFilter>,
    listing: Listing,
    filter: ListFilter,
) -> Result<List, Problem> {
    let (page, filter) = (Some(listing.page()), filter.into());
    let request = ListTestCasesRequest { project_id, page, filter, classification };
    listing.respond(cases.list_test_cases(caller.call(request)).await?).await
}

/// Returns a test case with its plans.
#[utoipa::path(
    get, path = "/api/projects/{projectId}/testcases/{testCaseId}",
    operation_id = "get_test_case", tag = "Test cases",
    extensions(("x-grpc-method" = json!("/assay.catalog.v1.TestCaseService/BatchGetTestCases"))),
    responses((status = OK, description = "The test case", body = TestCase)),
)]
async fn get(
    State(cases): State<CaseCalls>,
    caller: Caller,
    Path((project_id, id)): Path<(String, String)>,
) -> Result<Json<TestCase>, Problem> {
    Ok(Json(cases.get(caller, Some(project_id), id).await?))
}

/// Returns a test case with its plans, by its permanent URL.
#[utoipa::path(
    get, path = "/api/projects/0/testcases/{testCaseId}",
    operation_id = "get_test_case_permanently", tag = "Test cases",
    extensions(("x-grpc-method" = json!("/assay.catalog.v1.TestCaseService/BatchGetTestCases"))),
    responses((status = OK, description = "The test case", body = TestCase)),
)]
async fn get_permanent(
    State(cases): State<CaseCalls>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<TestCase>, Problem> {
    Ok(Json(cases.get(caller, None, id).await?))
}

/// Adds a test case to a project.
#[utoipa::path(
    post, path = "/api/projects/{projectId}/testcases", operation_id = "create_test_case",
    tag = "Test cases", request_body = TestCaseInput,
    extensions(("x-grpc-method" = json!("/assay.catalog.v1.TestCaseService/BatchCreateTestCases"))),
    responses((status = CREATED, description = "The new test case", body = TestCase)),
)]
async fn create(
    State(cases): State<CaseCalls>,
    caller: Caller,
    Path(project_id): Path<String>,
    Body(input): Body<TestCaseInput>,
) -> Result<Created<Json<TestCase>>, Problem> {
    let case = cases.create(caller, project_id, input).await?;
    let location = format!("/api/projects/{}/testcases/{}", case.project_id, case.id);
    Ok(Created(location, Json(case)))
}

/// Changes a test case, or moves it into the archive or out of it.
#[utoipa::path(
    put, path = "/api/projects/{projectId}/testcases/{testCaseId}",
    operation_id = "update_test_case", tag = "Test cases",
    request_body = TestCaseInput,
    extensions(("x-grpc-method" = json!("/assay.catalog.v1.TestCaseService/BatchUpdateTestCases"))),
    responses((status = OK, description = "The changed test case", body = TestCase)),
)]
async fn update(
    State(cases): State<CaseCalls>,
    caller: Caller,
    Path((project_id, id)): Path<(String, String)>,
    Update { changes, fields, data_version, .. }: Update<TestCaseInput>,
) -> Result<Json<TestCase>, Problem> {
    let changes = Some(changes);
    let request = UpdateTestCaseRequest { id, data_version, changes, fields, ..Default::default() };
    Ok(Json(cases.update(caller, project_id, request).await?))
}

/// Deletes a test case with its plans, and removes it from its test sets.
///
/// Its test reports are kept.
#[utoipa::path(
    delete, path = "/api/projects/{projectId}/testcases/{testCaseId}",
    operation_id = "delete_test_case", tag = "Test cases",
    extensions(("x-grpc-method" = json!("/assay.catalog.v1.TestCaseService/DeleteTestCase"))),
    responses((status = NO_CONTENT, description = "The test case has been deleted")),
)]
async fn delete(
    State(mut cases): State<TestCases>,
    caller: Caller,
    Path((project_id, id)): Path<(String, String)>,
) -> Result<StatusCode, Problem> {
    cases.delete_test_case(caller.call(DeleteTestCaseRequest { project_id, id })).await?;
    Ok(StatusCode::NO_CONTENT)
}
