//! `/api/projects/{projectId}/testsets`.

mod membership;
mod of_test_case;

use assay_auth::Caller;
use assay_proto::catalog::{
    CreateTestSetRequest, DeleteTestSetRequest, GetTestSetRequest, ListFilter, ListTestSetsRequest,
    TestCase, TestSet, TestSetEntry, TestSetInput, UpdateTestSetRequest,
};
use axum::extract::State;
use http::StatusCode;
use utoipa_axum::{
    router::{OpenApiRouter, UtoipaMethodRouterExt},
    routes,
};

use crate::{
    body::Body,
    list::{List, Listing},
    path::{Path, read_only, shortened},
    problem::Problem,
    response::{Created, Json, Resource, Streamed, StreamedResource},
    services::{Services, TestSets},
    update::{Updatable, Update},
};

pub(super) fn routes() -> OpenApiRouter<Services> {
    OpenApiRouter::new()
        .routes(routes!(list, create))
        .routes(routes!(list_archived))
        .routes(routes!(list_favorites))
        .routes(routes!(list_recent))
        .routes(routes!(get, update, delete))
        .routes(routes!(get_permanent).map(read_only))
        .routes(shortened(routes!(get_permanent)))
        .merge(membership::routes())
        .merge(of_test_case::routes())
}

impl Resource for TestSetEntry {}

impl Resource for TestSet {
    fn data_version(&self) -> Option<&str> {
        Some(&self.data_version)
    }
}

impl StreamedResource for TestSet {
    type Item = TestCase;

    fn into_items(self) -> Vec<TestCase> {
        self.test_cases
    }
}

impl Updatable for TestSetInput {
    const REFERENCES: &'static [&'static str] = &["TestCases"];
}

/// Lists the test sets of a project that are not archived, newest first.
#[utoipa::path(
    get, path = "/api/projects/{projectId}/testsets", operation_id = "list_test_sets",
    tag = "Test sets", params(Listing),
    extensions(("x-grpc-method" = json!("/assay.catalog.v1.TestSetService/ListTestSets"))),
    responses((status = OK, description = "The test sets", body = [TestSetEntry])),
)]
async fn list(
    State(sets): State<TestSets>,
    caller: Caller,
    Path(project_id): Path<String>,
    listing: Listing,
) -> Result<List, Problem> {
    list_of(sets, &caller, project_id, listing, ListFilter::Unspecified).await
}

/// Lists the test sets of a project that are in the archive, newest first.
#[utoipa::path(
    get, path = "/api/projects/{projectId}/testsets/archive",
    operation_id = "list_test_sets_in_archive", tag = "Test sets", params(Listing),
    extensions(("x-grpc-method" = json!("/assay.catalog.v1.TestSetService/ListTestSets"))),
    responses((status = OK, description = "The test sets", body = [TestSetEntry])),
)]
async fn list_archived(
    State(sets): State<TestSets>,
    caller: Caller,
    Path(project_id): Path<String>,
    listing: Listing,
) -> Result<List, Problem> {
    list_of(sets, &caller, project_id, listing, ListFilter::Archive).await
}

/// Lists the test sets of a project that are favorites of the caller, newest first.
///
/// Archived items are excluded.
#[utoipa::path(
    get, path = "/api/projects/{projectId}/testsets/favorites",
    operation_id = "list_test_sets_in_favorites", tag = "Test sets", params(Listing),
    extensions(("x-grpc-method" = json!("/assay.catalog.v1.TestSetService/ListTestSets"))),
    responses((status = OK, description = "The test sets", body = [TestSetEntry])),
)]
async fn list_favorites(
    State(sets): State<TestSets>,
    caller: Caller,
    Path(project_id): Path<String>,
    listing: Listing,
) -> Result<List, Problem> {
    list_of(sets, &caller, project_id, listing, ListFilter::Favorites).await
}

/// Lists the twenty test sets of a project that the caller opened most recently, latest first.
#[utoipa::path(
    get, path = "/api/projects/{projectId}/testsets/recent",
    operation_id = "list_test_sets_recent", tag = "Test sets", params(Listing),
    extensions(("x-grpc-method" = json!("/assay.catalog.v1.TestSetService/ListTestSets"))),
    responses((status = OK, description = "The test sets", body = [TestSetEntry])),
)]
async fn list_recent(
    State(sets): State<TestSets>,
    caller: Caller,
    Path(project_id): Path<String>,
    listing: Listing,
) -> Result<List, Problem> {
    list_of(sets, &caller, project_id, listing, ListFilter::Recent).await
}

async fn list_of(
    mut sets: TestSets,
    caller: &Caller,
    project_id: String,
    listing: Listing,
    filter: ListFilter,
) -> Result<List, Problem> {
    let request =
        ListTestSetsRequest { project_id, page: Some(listing.page()), filter: filter.into() };
    listing.respond(sets.list_test_sets(caller.call(request)).await?).await
}

/// Returns a test set with its test cases.
///
/// Archived test cases are excluded. With a body that has a field to change, this operation updates
/// the test set, for clients that cannot send PUT.
#[utoipa::path(
    get, path = "/api/projects/{projectId}/testsets/{testSetId}", operation_id = "get_test_set",
    tag = "Test sets", request_body = Option<TestSetInput>,
    extensions(("x-grpc-method" = json!("/assay.catalog.v1.TestSetService/GetTestSet"))),
    responses((status = OK, description = "The test set", body = TestSet)),
)]
async fn get(
    sets: State<TestSets>,
    caller: Caller,
    path: Path<(String, String)>,
    changes: Option<Update<TestSetInput>>,
) -> Result<Streamed<TestSet>, Problem> {
    match changes.filter(|changes| !changes.fields.is_empty()) {
        Some(changes) => update(sets, caller, path, changes).await,
        None => read(sets, caller, path).await,
    }
}

async fn read(
    State(mut sets): State<TestSets>,
    caller: Caller,
    Path((project_id, id)): Path<(String, String)>,
) -> Result<Streamed<TestSet>, Problem> {
    let request = GetTestSetRequest { project_id: Some(project_id), id };
    Streamed::of(sets.get_test_set(caller.call(request)).await?).await
}

/// Returns a test set with its test cases, by its permanent URL.
#[utoipa::path(
    get, path = "/api/projects/0/testsets/{testSetId}",
    operation_id = "get_test_set_permanently", tag = "Test sets",
    extensions(("x-grpc-method" = json!("/assay.catalog.v1.TestSetService/GetTestSet"))),
    responses((status = OK, description = "The test set", body = TestSet)),
)]
async fn get_permanent(
    State(mut sets): State<TestSets>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Streamed<TestSet>, Problem> {
    let request = GetTestSetRequest { project_id: None, id };
    Streamed::of(sets.get_test_set(caller.call(request)).await?).await
}

/// Adds a test set to a project.
#[utoipa::path(
    post, path = "/api/projects/{projectId}/testsets", operation_id = "create_test_set",
    tag = "Test sets", request_body = TestSetInput,
    extensions(("x-grpc-method" = json!("/assay.catalog.v1.TestSetService/CreateTestSet"))),
    responses((status = CREATED, description = "The new test set", body = TestSetEntry)),
)]
async fn create(
    State(mut sets): State<TestSets>,
    caller: Caller,
    Path(project_id): Path<String>,
    Body(input): Body<TestSetInput>,
) -> Result<Created<Json<TestSetEntry>>, Problem> {
    let sets_of_project = format!("/api/projects/{project_id}/testsets");
    let request = CreateTestSetRequest { project_id, test_set: Some(input) };
    let set = sets.create_test_set(caller.call(request)).await?.into_inner();
    Ok(Created(format!("{sets_of_project}/{}", set.id), Json(set)))
}

/// Changes a test set, or moves it into the archive or out of it.
///
/// `TestCases` replaces the test cases of the set and their order.
#[utoipa::path(
    put, path = "/api/projects/{projectId}/testsets/{testSetId}",
    operation_id = "update_test_set", tag = "Test sets",
    request_body = TestSetInput,
    extensions(("x-grpc-method" = json!("/assay.catalog.v1.TestSetService/UpdateTestSet"))),
    responses((status = OK, description = "The changed test set", body = TestSet)),
)]
async fn update(
    State(mut sets): State<TestSets>,
    caller: Caller,
    Path((project_id, id)): Path<(String, String)>,
    Update { changes, fields, data_version, .. }: Update<TestSetInput>,
) -> Result<Streamed<TestSet>, Problem> {
    let changes = Some(changes);
    let request = UpdateTestSetRequest { project_id, id, data_version, changes, fields };
    Streamed::of(sets.update_test_set(caller.call(request)).await?).await
}

/// Deletes a test set, but not its test cases.
///
/// Its executions are kept.
#[utoipa::path(
    delete, path = "/api/projects/{projectId}/testsets/{testSetId}",
    operation_id = "delete_test_set", tag = "Test sets",
    extensions(("x-grpc-method" = json!("/assay.catalog.v1.TestSetService/DeleteTestSet"))),
    responses((status = NO_CONTENT, description = "The test set has been deleted")),
)]
async fn delete(
    State(mut sets): State<TestSets>,
    caller: Caller,
    Path((project_id, id)): Path<(String, String)>,
) -> Result<StatusCode, Problem> {
    sets.delete_test_set(caller.call(DeleteTestSetRequest { project_id, id })).await?;
    Ok(StatusCode::NO_CONTENT)
}
