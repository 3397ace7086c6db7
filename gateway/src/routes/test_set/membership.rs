//! `/api/projects/{projectId}/testsets/{testSetId}/testcases`: the test cases of a test set.

use assay_auth::Caller;
use assay_proto::{
    Reference,
    catalog::{
        ExcludeTestCasesRequest, IncludeTestCasesRequest, ListIncludedTestCasesRequest, TestCase,
        TestSet,
    },
};
use axum::extract::State;
use http::StatusCode;
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    body::one_or_many::OneOrMany,
    list::{List, Listing},
    path::Path,
    problem::Problem,
    response::Streamed,
    services::{Services, TestSets},
};

pub(super) fn routes() -> OpenApiRouter<Services> {
    OpenApiRouter::new().routes(routes!(list, include, include_many, exclude))
}

/// The test cases to include or exclude.
type References = OneOrMany<Reference>;

/// Lists the test cases of a test set in its order.
#[utoipa::path(
    get, path = "/api/projects/{projectId}/testsets/{testSetId}/testcases",
    operation_id = "list_included_test_cases", tag = "Test sets", params(Listing),
    extensions(("x-grpc-method" = json!("/assay.catalog.v1.TestSetService/ListIncludedTestCases"))),
    responses((status = OK, description = "The test cases", body = [TestCase])),
)]
async fn list(
    State(mut sets): State<TestSets>,
    caller: Caller,
    Path((project_id, test_set_id)): Path<(String, String)>,
    listing: Listing,
) -> Result<List, Problem> {
    let request =
        ListIncludedTestCasesRequest { project_id, test_set_id, page: Some(listing.page()) };
    let batches = sets.list_included_test_cases(caller.call(request)).await?;
    listing.respond(batches).await
}

/// Adds test cases to the end of a test set, all or none.
///
/// Including a test case again has no effect.
#[utoipa::path(
    post, path = "/api/projects/{projectId}/testsets/{testSetId}/testcases",
    operation_id = "include_test_cases", tag = "Test sets",
    request_body(content = Vec<Reference>,
        description = "The test cases to include. A single one may be sent without the array."),
    extensions(("x-grpc-method" = json!("/assay.catalog.v1.TestSetService/IncludeTestCases"))),
    responses((status = OK, description = "The changed test set", body = TestSet)),
)]
async fn include(
    State(mut sets): State<TestSets>,
    caller: Caller,
    Path((project_id, test_set_id)): Path<(String, String)>,
    OneOrMany(test_cases): References,
) -> Result<Streamed<TestSet>, Problem> {
    let request = IncludeTestCasesRequest { project_id, test_set_id, test_cases };
    Streamed::of(sets.include_test_cases(caller.call(request)).await?).await
}

/// Adds test cases to the end of a test set, all or none, like POST.
#[utoipa::path(
    put, path = "/api/projects/{projectId}/testsets/{testSetId}/testcases",
    operation_id = "include_test_cases_by_put", tag = "Test sets",
    request_body(content = Vec<Reference>,
        description = "The test cases to include. A single one may be sent without the array."),
    extensions(("x-grpc-method" = json!("/assay.catalog.v1.TestSetService/IncludeTestCases"))),
    responses((status = OK, description = "The changed test set", body = TestSet)),
)]
async fn include_many(
    sets: State<TestSets>,
    caller: Caller,
    path: Path<(String, String)>,
    test_cases: References,
) -> Result<Streamed<TestSet>, Problem> {
    include(sets, caller, path, test_cases).await
}

/// Removes test cases from a test set, all or none.
#[utoipa::path(
    delete, path = "/api/projects/{projectId}/testsets/{testSetId}/testcases",
    operation_id = "exclude_test_cases", tag = "Test sets",
    request_body(content = Vec<Reference>,
        description = "The test cases to exclude. A single one may be sent without the array."),
    extensions(("x-grpc-method" = json!("/assay.catalog.v1.TestSetService/ExcludeTestCases"))),
    responses((status = NO_CONTENT, description = "The test cases have been removed from the set")),
)]
async fn exclude(
    State(mut sets): State<TestSets>,
    caller: Caller,
    Path((project_id, test_set_id)): Path<(String, String)>,
    OneOrMany(test_cases): References,
) -> Result<StatusCode, Problem> {
    let request = ExcludeTestCasesRequest { project_id, test_set_id, test_cases };
    sets.exclude_test_cases(caller.call(request)).await?;
    Ok(StatusCode::NO_CONTENT)
}
