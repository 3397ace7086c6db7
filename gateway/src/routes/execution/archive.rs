//! The archive of executions.

use assay_auth::Caller;
use assay_proto::execution::{ExecutionEntry, ExecutionInput, UpdateExecutionRequest};
use axum::extract::State;
use http::StatusCode;
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{filter::Filter, list_of};
use crate::{
    list::{List, Listing},
    path::{Path, ShortRoutes},
    problem::Problem,
    query::Query,
    services::{Executions, Services},
    update::{Updatable, Update},
};

pub(super) fn routes() -> OpenApiRouter<Services> {
    OpenApiRouter::new().routes(routes!(list)).routes_also_short(routes!(update))
}

impl Updatable for ExecutionInput {}

/// Lists the executions of a project that are in the archive, newest first.
#[utoipa::path(
    get, path = "/api/projects/{projectId}/executions/archive",
    operation_id = "list_executions_in_archive", tag = "Executions", params(Filter, Listing),
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
    list_of(executions, &caller, listing, (project_id, None), filter, Some(true)).await
}

/// Moves an execution into the archive or out of it.
#[utoipa::path(
    put, path = "/api/projects/{projectId}/executions/{executionId}",
    operation_id = "update_execution", tag = "Executions",
    request_body = ExecutionInput,
    extensions(("x-grpc-method" = json!("/assay.execution.v1.ExecutionService/UpdateExecution"))),
    responses((status = NO_CONTENT, description = "The execution has been moved")),
)]
async fn update(
    State(mut executions): State<Executions>,
    caller: Caller,
    Path((project_id, id)): Path<(String, String)>,
    Update { changes, fields, data_version, .. }: Update<ExecutionInput>,
) -> Result<StatusCode, Problem> {
    let changes = Some(changes);
    let request = UpdateExecutionRequest { project_id, id, data_version, changes, fields };
    executions.update_execution(caller.call(request)).await?;
    Ok(StatusCode::NO_CONTENT)
}
