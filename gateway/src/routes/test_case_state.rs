//! `…/testcases/{testCaseId}/state`, and the test cases of a project that are muted or skipped.

use assay_auth::Caller;
use assay_proto::execution::{
    CaseState, GetTestCaseStateRequest, ListTestCaseStatesRequest, TestCaseState,
    TestCaseStateInput, UpdateTestCaseStateRequest,
};
use axum::extract::State;
use serde::Deserialize;
use utoipa::IntoParams;
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    list::{List, Listing},
    path::Path,
    problem::Problem,
    query::{Query, unless_empty},
    response::{Json, Resource},
    services::{Services, TestCaseStates},
    update::{Updatable, Update},
};

pub(super) fn routes() -> OpenApiRouter<Services> {
    OpenApiRouter::new().routes(routes!(list)).routes(routes!(get, update))
}

impl Resource for TestCaseState {
    fn data_version(&self) -> Option<&str> {
        Some(&self.data_version)
    }
}

impl Updatable for TestCaseStateInput {}

/// The test cases to list.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct Filter {
    /// Return only test cases in this state.
    #[param(inline, example = "Skipped")]
    #[serde(default, deserialize_with = "unless_empty")]
    state: Option<CaseState>,
}

/// Lists the test cases of a project that are muted or skipped, newest first.
///
/// A runner reads here which tests to leave out.
#[utoipa::path(
    get, path = "/api/projects/{projectId}/testcasestates", operation_id = "list_test_case_states",
    tag = "Test cases", params(Filter, Listing),
    extensions(("x-grpc-method" =
        json!("/assay.execution.v1.TestCaseStateService/ListTestCaseStates"))),
    responses((status = OK, description = "The states", body = [TestCaseState])),
)]
async fn list(
    State(mut states): State<TestCaseStates>,
    caller: Caller,
    Path(project_id): Path<String>,
    Query(Filter { state }): Query<Filter>,
    listing: Listing,
) -> Result<List, Problem> {
    let state = state.unwrap_or_default().into();
    let request = ListTestCaseStatesRequest { project_id, state, page: Some(listing.page()) };
    listing.respond(states.list_test_case_states(caller.call(request)).await?).await
}

/// Returns the state of a test case.
#[utoipa::path(
    get, path = "/api/projects/{projectId}/testcases/{testCaseId}/state",
    operation_id = "get_test_case_state", tag = "Test cases",
    extensions(("x-grpc-method" =
        json!("/assay.execution.v1.TestCaseStateService/GetTestCaseState"))),
    responses((status = OK, description = "The state", body = TestCaseState)),
)]
async fn get(
    State(mut states): State<TestCaseStates>,
    caller: Caller,
    Path((project_id, test_case_id)): Path<(String, String)>,
) -> Result<Json<TestCaseState>, Problem> {
    let request = GetTestCaseStateRequest { project_id, test_case_id };
    Ok(Json(states.get_test_case_state(caller.call(request)).await?.into_inner()))
}

/// Mutes, skips or enables a test case.
///
/// A muted test case is run. Its failures are listed, and do not count against the verdict of executions
/// that are reported until a date. A skipped one is left out of executions that engines run: its report is
/// `Canceled` with a comment.
///
/// With the version that the client has seen, in `DataVersion` or `If-Match`, a change is refused with 409 or 412
/// if somebody else has muted, skipped or enabled the test case since.
#[utoipa::path(
    put, path = "/api/projects/{projectId}/testcases/{testCaseId}/state",
    operation_id = "update_test_case_state", tag = "Test cases",
    request_body = TestCaseStateInput,
    extensions(("x-grpc-method" =
        json!("/assay.execution.v1.TestCaseStateService/UpdateTestCaseState"))),
    responses((status = OK, description = "The changed state", body = TestCaseState)),
)]
async fn update(
    State(mut states): State<TestCaseStates>,
    caller: Caller,
    Path((project_id, test_case_id)): Path<(String, String)>,
    Update { changes, fields, data_version, .. }: Update<TestCaseStateInput>,
) -> Result<Json<TestCaseState>, Problem> {
    let changes = Some(changes);
    let request =
        UpdateTestCaseStateRequest { project_id, test_case_id, data_version, changes, fields };
    Ok(Json(states.update_test_case_state(caller.call(request)).await?.into_inner()))
}
