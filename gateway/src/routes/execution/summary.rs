//! `…/executions/{executionId}/summary`.

use assay_auth::Caller;
use assay_proto::execution::{ExecutionSummary, GetExecutionSummaryRequest};
use axum::extract::State;
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    path::{Path, ShortRoutes, unless_zero},
    problem::Problem,
    response::{Json, Resource},
    services::{Executions, Services},
};

pub(super) fn routes() -> OpenApiRouter<Services> {
    OpenApiRouter::new().routes_also_short(routes!(get))
}

impl Resource for ExecutionSummary {
    fn data_version(&self) -> Option<&str> {
        Some(&self.data_version)
    }

    fn page(&self) -> Option<&str> {
        self.url.as_deref()
    }
}

/// Returns the outcome of an execution, and how it differs from those before.
///
/// Results are compared with those of the series: the executions of the same test set, environment
/// and branch that had ended when this one was requested, at most ten. A branch without any is
/// compared with the default branch of the project.
#[utoipa::path(
    get, path = "/api/projects/{projectId}/executions/{executionId}/summary",
    operation_id = "get_execution_summary", tag = "Executions",
    extensions(("x-grpc-method" =
        json!("/assay.execution.v1.ExecutionService/GetExecutionSummary"))),
    responses((status = OK, description = "The outcome", body = ExecutionSummary)),
)]
async fn get(
    State(mut executions): State<Executions>,
    caller: Caller,
    Path((project_id, id)): Path<(String, String)>,
) -> Result<Json<ExecutionSummary>, Problem> {
    let request = GetExecutionSummaryRequest { project_id: unless_zero(project_id), id };
    Ok(Json(executions.get_execution_summary(caller.call(request)).await?.into_inner()))
}
