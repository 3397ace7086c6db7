//! `/api/projects/{projectId}/executions`, and those of a test set.

mod archive;
mod junit;

use assay_auth::Caller;
use assay_proto::{
    Page,
    execution::{
        CancelExecutionRequest, CompleteExecutionRequest, Execution, ExecutionEntry,
        GetExecutionRequest, ListExecutionsRequest, StartExecutionInput, StartExecutionRequest,
        TestReport,
    },
};
use axum::extract::State;
use http::StatusCode;
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    answer::{Answer, Created, InParts, Parts},
    body::Body,
    idempotency::IdempotencyKey,
    list::{List, Listing},
    path::Path,
    problem::Problem,
    services::{Executions, Services},
};

/// How many executions of a set are recent.
const RECENT: i32 = 30;

pub(super) fn routes() -> OpenApiRouter<Services> {
    OpenApiRouter::new()
        .routes(routes!(list))
        .merge(archive::routes())
        .routes(routes!(list_recent, start))
        .routes(routes!(list_history))
        .routes(routes!(get, cancel))
        .merge(junit::routes())
        .routes(routes!(complete))
}

impl Answer for Execution {
    fn data_version(&self) -> Option<&str> {
        Some(&self.data_version)
    }
}

impl InParts for Execution {
    type Item = TestReport;

    fn into_items(self) -> Vec<TestReport> {
        self.test_reports
    }
}

/// Where an execution is.
pub(super) fn location(execution: &Execution) -> String {
    format!("/api/projects/{}/executions/{}", execution.project_id, execution.id)
}

/// Lists the executions of a project that are not archived, newest first.
#[utoipa::path(
    get, path = "/api/projects/{projectId}/executions", operation_id = "list_executions",
    tag = "Executions", params(Listing),
    extensions(("x-grpc-method" = json!("/assay.execution.v1.ExecutionService/ListExecutions"))),
    responses((status = OK, description = "The executions", body = [ExecutionEntry])),
)]
async fn list(
    State(executions): State<Executions>,
    caller: Caller,
    Path(project_id): Path<String>,
    listing: Listing,
) -> Result<List, Problem> {
    let page = listing.page();
    list_of(executions, &caller, listing, (project_id, None), page, Some(false)).await
}

/// Lists executions of a project, or of one of its sets.
async fn list_of(
    mut executions: Executions,
    caller: &Caller,
    listing: Listing,
    (project_id, test_set_id): (String, Option<String>),
    page: Page,
    archived: Option<bool>,
) -> Result<List, Problem> {
    let request = ListExecutionsRequest { project_id, test_set_id, page: Some(page), archived };
    let batches = executions.list_executions(caller.call(request)).await?;
    listing.answer(batches).await
}

/// Lists the latest executions of a test set that are not archived, at most 30, newest first.
#[utoipa::path(
    get, path = "/api/projects/{projectId}/testsets/{testSetId}/executions",
    operation_id = "list_executions_of_test_set", tag = "Executions", params(Listing),
    extensions(("x-grpc-method" = json!("/assay.execution.v1.ExecutionService/ListExecutions"))),
    responses((status = OK, description = "The latest executions", body = [ExecutionEntry])),
)]
async fn list_recent(
    State(mut executions): State<Executions>,
    caller: Caller,
    Path((project_id, test_set_id)): Path<(String, String)>,
    listing: Listing,
) -> Result<List, Problem> {
    let (page, test_set_id) = (Some(listing.first(RECENT)), Some(test_set_id));
    let request = ListExecutionsRequest { project_id, test_set_id, page, archived: Some(false) };
    listing.answer_first(executions.list_executions(caller.call(request)).await?).await
}

/// Lists all executions of a test set, archived or not, newest first.
#[utoipa::path(
    get, path = "/api/projects/{projectId}/testsets/{testSetId}/executions/history",
    operation_id = "list_executions_of_test_set_history", tag = "Executions", params(Listing),
    extensions(("x-grpc-method" = json!("/assay.execution.v1.ExecutionService/ListExecutions"))),
    responses((status = OK, description = "The executions", body = [ExecutionEntry])),
)]
async fn list_history(
    State(executions): State<Executions>,
    caller: Caller,
    Path((project_id, test_set_id)): Path<(String, String)>,
    listing: Listing,
) -> Result<List, Problem> {
    let (page, set) = (listing.page(), (project_id, Some(test_set_id)));
    list_of(executions, &caller, listing, set, page, None).await
}

/// Returns an execution with its test reports.
#[utoipa::path(
    get, path = "/api/projects/{projectId}/executions/{executionId}",
    operation_id = "get_execution", tag = "Executions",
    extensions(("x-grpc-method" = json!("/assay.execution.v1.ExecutionService/GetExecution"))),
    responses((status = OK, description = "The execution", body = Execution)),
)]
async fn get(
    State(mut executions): State<Executions>,
    caller: Caller,
    Path((project_id, id)): Path<(String, String)>,
) -> Result<Parts<Execution>, Problem> {
    let request = GetExecutionRequest { project_id, id };
    Parts::of(executions.get_execution(caller.call(request)).await?).await
}

/// Starts an execution of a test set.
///
/// Each test case of the set is run by its plan with the highest revision that is ready for
/// execution. Names, versions and plans are copied: what changes later does not rewrite history.
///
/// In mode `Dispatch` engines run it that serve the target group of its environment; without an
/// environment, engines that ask for no target group. In mode `External` the caller reports the
/// results.
#[utoipa::path(
    post, path = "/api/projects/{projectId}/testsets/{testSetId}/executions",
    operation_id = "start_execution", tag = "Executions", params(IdempotencyKey),
    request_body = Option<StartExecutionInput>,
    extensions(("x-grpc-method" = json!("/assay.execution.v1.ExecutionService/StartExecution"))),
    responses((status = CREATED, description = "The new execution", body = Execution)),
)]
async fn start(
    State(mut executions): State<Executions>,
    caller: Caller,
    Path((project_id, test_set_id)): Path<(String, String)>,
    IdempotencyKey(idempotency_key): IdempotencyKey,
    input: Option<Body<StartExecutionInput>>,
) -> Result<Created<Parts<Execution>>, Problem> {
    let Body(input) = input.unwrap_or_default();
    let execution = Some(input);
    let request = StartExecutionRequest { project_id, test_set_id, execution, idempotency_key };
    let started = Parts::of(executions.start_execution(caller.call(request)).await?).await?;
    Ok(Created(location(&started.first), started))
}

/// Ends an execution in mode `External`.
///
/// What was not reported is `Aborted`.
#[utoipa::path(
    post, path = "/api/projects/{projectId}/executions/{executionId}/complete",
    operation_id = "complete_execution", tag = "Executions",
    extensions(("x-grpc-method" = json!("/assay.execution.v1.ExecutionService/CompleteExecution"))),
    responses((status = OK, description = "The completed execution", body = Execution)),
)]
async fn complete(
    State(mut executions): State<Executions>,
    caller: Caller,
    Path((project_id, id)): Path<(String, String)>,
) -> Result<Parts<Execution>, Problem> {
    let request = CompleteExecutionRequest { project_id, id };
    Parts::of(executions.complete_execution(caller.call(request)).await?).await
}

/// Cancels an execution.
///
/// What was not reported is `Canceled`, at once; engines that are at work learn it at their next
/// heartbeat. Canceling again changes nothing.
#[utoipa::path(
    delete, path = "/api/projects/{projectId}/executions/{executionId}",
    operation_id = "cancel_execution", tag = "Executions",
    extensions(("x-grpc-method" = json!("/assay.execution.v1.ExecutionService/CancelExecution"))),
    responses((status = NO_CONTENT, description = "The execution is canceled")),
)]
async fn cancel(
    State(mut executions): State<Executions>,
    caller: Caller,
    Path((project_id, id)): Path<(String, String)>,
) -> Result<StatusCode, Problem> {
    let request = CancelExecutionRequest { project_id, id };
    executions.cancel_execution(caller.call(request)).await?;
    Ok(StatusCode::NO_CONTENT)
}
