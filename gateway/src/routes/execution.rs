//! `/api/projects/{projectId}/executions`, and those of a test set.

mod archive;
mod document;
mod export;
mod filter;
mod open;
mod summary;
pub(super) mod verdict;

use assay_auth::Caller;
use assay_proto::execution::{
    CancelExecutionRequest, CompleteExecutionInput, CompleteExecutionRequest, Execution,
    ExecutionEntry, GetExecutionRequest, ListExecutionsRequest, StartExecutionInput,
    StartExecutionRequest, TestReport,
};
use axum::extract::State;
use http::StatusCode;
use serde::Deserialize;
use utoipa::IntoParams;
use utoipa_axum::{router::OpenApiRouter, routes};

use self::filter::Filter;
use crate::{
    body::Body,
    idempotency::IdempotencyKey,
    list::{List, Listing},
    path::{Path, ShortRoutes},
    problem::Problem,
    query::{OnlyQuery, Query},
    response::{Created, Resource, Streamed, StreamedResource},
    services::{Executions, Services},
};

/// Number of recent executions of a test set.
const RECENT: i32 = 30;

pub(super) fn routes() -> OpenApiRouter<Services> {
    OpenApiRouter::new()
        .routes(routes!(list))
        .merge(archive::routes())
        .merge(open::routes())
        .routes(routes!(list_recent, start))
        .routes(routes!(list_history))
        .routes_also_short(routes!(get, cancel))
        .merge(summary::routes())
        .merge(verdict::routes())
        .merge(export::routes())
        .merge(document::routes())
        .routes_also_short(routes!(complete))
}

impl Resource for Execution {
    fn data_version(&self) -> Option<&str> {
        Some(&self.data_version)
    }

    fn page(&self) -> Option<&str> {
        self.url.as_deref()
    }
}

impl StreamedResource for Execution {
    type Item = TestReport;

    fn into_items(self) -> Vec<TestReport> {
        self.test_reports
    }
}

/// Returns the path of an execution.
pub(super) fn location(execution: &Execution) -> String {
    format!("/api/projects/{}/executions/{}", execution.project_id, execution.id)
}

/// Lists the executions of a project that are not archived, newest first.
#[utoipa::path(
    get, path = "/api/projects/{projectId}/executions", operation_id = "list_executions",
    tag = "Executions", params(Filter, Listing),
    extensions(("x-grpc-method" = json!("/assay.execution.v1.ExecutionService/ListExecutions"))),
    responses((status = OK, description = "The executions", body = [ExecutionEntry])),
)]
async fn list(
    State(executions): State<Executions>,
    caller: Caller,
    Path(project_id): Path<String>,
    Query(filter): Query<Filter>,
    listing: Listing,
) -> Result<List, Problem> {
    list_of(executions, &caller, listing, (project_id, None), filter, Some(false)).await
}

/// Lists executions of a project or of a test set.
async fn list_of(
    mut executions: Executions,
    caller: &Caller,
    listing: Listing,
    (project_id, test_set_id): (String, Option<String>),
    filter: Filter,
    archived: Option<bool>,
) -> Result<List, Problem> {
    let (page, filter) = (Some(listing.page()), Some(filter.into()));
    let request = ListExecutionsRequest { project_id, test_set_id, page, archived, filter };
    let batches = executions.list_executions(caller.call(request)).await?;
    listing.respond(batches).await
}

/// Lists the latest executions of a test set that are not archived, at most 30, newest first.
#[utoipa::path(
    get, path = "/api/projects/{projectId}/testsets/{testSetId}/executions",
    operation_id = "list_executions_of_test_set", tag = "Executions", params(Filter, Listing),
    extensions(("x-grpc-method" = json!("/assay.execution.v1.ExecutionService/ListExecutions"))),
    responses((status = OK, description = "The latest executions", body = [ExecutionEntry])),
)]
async fn list_recent(
    State(mut executions): State<Executions>,
    caller: Caller,
    Path((project_id, test_set_id)): Path<(String, String)>,
    Query(filter): Query<Filter>,
    listing: Listing,
) -> Result<List, Problem> {
    let (page, filter) = (Some(listing.first(RECENT)), Some(filter.into()));
    let (test_set_id, archived) = (Some(test_set_id), Some(false));
    let request = ListExecutionsRequest { project_id, test_set_id, page, archived, filter };
    listing.respond_from_first(executions.list_executions(caller.call(request)).await?).await
}

/// Lists all executions of a test set, archived or not, newest first.
#[utoipa::path(
    get, path = "/api/projects/{projectId}/testsets/{testSetId}/executions/history",
    operation_id = "list_executions_of_test_set_history", tag = "Executions", params(Filter, Listing),
    extensions(("x-grpc-method" = json!("/assay.execution.v1.ExecutionService/ListExecutions"))),
    responses((status = OK, description = "The executions", body = [ExecutionEntry])),
)]
async fn list_history(
    State(executions): State<Executions>,
    caller: Caller,
    Path((project_id, test_set_id)): Path<(String, String)>,
    Query(filter): Query<Filter>,
    listing: Listing,
) -> Result<List, Problem> {
    let set = (project_id, Some(test_set_id));
    list_of(executions, &caller, listing, set, filter, None).await
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
) -> Result<Streamed<Execution>, Problem> {
    let request = GetExecutionRequest { project_id, id };
    Streamed::of(executions.get_execution(caller.call(request)).await?).await
}

/// Starts an execution of a test set.
///
/// Each test case of the set is executed by the highest revision of its test plan that is ready for
/// execution. Names, versions and plans are copied, so that later changes do not affect the
/// execution.
///
/// In mode `Dispatch`, engines of the target group of the environment execute it; without an
/// environment, engines without a target group. In mode `External`, the caller reports the results.
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
) -> Result<Created<Streamed<Execution>>, Problem> {
    let Body(input) = input.unwrap_or_default();
    let execution = Some(input);
    let request = StartExecutionRequest { project_id, test_set_id, execution, idempotency_key };
    let started = Streamed::of(executions.start_execution(caller.call(request)).await?).await?;
    Ok(Created(location(&started.first), started))
}

/// The reporter that has completed.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct Completion {
    /// Name of the reporter of an open execution that has completed, unless the body has it. As soon as
    /// the number of `Reporters` have, the execution ends. Without a name it ends now.
    #[param(min_length = 1, example = "shard-1")]
    reporter: Option<String>,
}

/// Completes an execution in mode `External`, or the part of one of its reporters.
///
/// Test reports without a result become `Aborted`. Other parameters and fields than these are refused, and so is an
/// empty `reporter`.
#[utoipa::path(
    post, path = "/api/projects/{projectId}/executions/{executionId}/complete",
    operation_id = "complete_execution", tag = "Executions", params(Completion),
    request_body = Option<CompleteExecutionInput>,
    extensions(("x-grpc-method" = json!("/assay.execution.v1.ExecutionService/CompleteExecution"))),
    responses((status = OK, description = "The completed execution", body = Execution)),
)]
async fn complete(
    State(mut executions): State<Executions>,
    caller: Caller,
    Path((project_id, id)): Path<(String, String)>,
    OnlyQuery(Completion { reporter }): OnlyQuery<Completion>,
    input: Option<Body<CompleteExecutionInput>>,
) -> Result<Streamed<Execution>, Problem> {
    let of_body = input.and_then(|Body(input)| input.reporter);
    if reporter.is_some() && of_body.is_some() && reporter != of_body {
        return Err(Problem::invalid("Reporter", "must be that of the parameter `reporter`"));
    }
    let reporter = reporter.or(of_body);
    let request = CompleteExecutionRequest { project_id, id, reporter };
    Streamed::of(executions.complete_execution(caller.call(request)).await?).await
}

/// Cancels an execution.
///
/// Test reports without a result become `Canceled` immediately. Running engines are notified at
/// their next heartbeat. Canceling an execution again has no effect.
#[utoipa::path(
    delete, path = "/api/projects/{projectId}/executions/{executionId}",
    operation_id = "cancel_execution", tag = "Executions",
    extensions(("x-grpc-method" = json!("/assay.execution.v1.ExecutionService/CancelExecution"))),
    responses((status = NO_CONTENT, description = "The execution has been canceled")),
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
