//! `/api/projects/{projectId}/testcases/{testCaseId}/testsets`: the test sets of a test case.

use assay_auth::Caller;
use assay_proto::catalog::{ListTestSetsOfTestCaseRequest, TestSetEntry};
use axum::extract::State;
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    list::{List, Listing},
    path::Path,
    problem::Problem,
    services::{Services, TestSets},
};

pub(super) fn routes() -> OpenApiRouter<Services> {
    OpenApiRouter::new().routes(routes!(list)).routes(routes!(list_of_archived))
}

/// Lists the test sets that include a test case, newest first. Neither is archived.
#[utoipa::path(
    get, path = "/api/projects/{projectId}/testcases/{testCaseId}/testsets",
    operation_id = "list_test_sets_of_test_case", tag = "Test sets", params(Listing),
    extensions(("x-grpc-method" = json!("/assay.catalog.v1.TestSetService/ListTestSetsOfTestCase"))),
    responses((status = OK, description = "The test sets", body = [TestSetEntry])),
)]
async fn list(
    State(sets): State<TestSets>,
    caller: Caller,
    path: Path<(String, String)>,
    listing: Listing,
) -> Result<List, Problem> {
    list_of(sets, &caller, path, listing, false).await
}

/// Lists the test sets that include an archived test case, newest first.
///
/// The sets themselves are not archived. They show the test case again when it leaves the archive.
#[utoipa::path(
    get, path = "/api/projects/{projectId}/testcases/{testCaseId}/testsets/archive",
    operation_id = "list_test_sets_of_archived_test_case", tag = "Test sets", params(Listing),
    extensions(("x-grpc-method" = json!("/assay.catalog.v1.TestSetService/ListTestSetsOfTestCase"))),
    responses((status = OK, description = "The test sets", body = [TestSetEntry])),
)]
async fn list_of_archived(
    State(sets): State<TestSets>,
    caller: Caller,
    path: Path<(String, String)>,
    listing: Listing,
) -> Result<List, Problem> {
    list_of(sets, &caller, path, listing, true).await
}

async fn list_of(
    mut sets: TestSets,
    caller: &Caller,
    Path((project_id, test_case_id)): Path<(String, String)>,
    listing: Listing,
    archived: bool,
) -> Result<List, Problem> {
    let page = Some(listing.page());
    let request = ListTestSetsOfTestCaseRequest { project_id, test_case_id, page, archived };
    listing.respond(sets.list_test_sets_of_test_case(caller.call(request)).await?).await
}
