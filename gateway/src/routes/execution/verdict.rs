//! `…/executions/{executionId}/verdict`, as JSON, as Markdown and as a badge.

pub(in crate::routes) mod badge;
mod markdown;

use assay_auth::Caller;
use assay_proto::execution::{GetVerdictRequest, Verdict};
use axum::{
    extract::State,
    response::{IntoResponse, Response},
};
use http::{HeaderValue, header::CONTENT_TYPE};
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    path::{Path, ShortRoutes, unless_zero},
    problem::Problem,
    response::{Json, Resource},
    services::{Executions, Services},
};

const MARKDOWN: HeaderValue = HeaderValue::from_static("text/markdown; charset=utf-8");
pub(in crate::routes) const SVG: HeaderValue = HeaderValue::from_static("image/svg+xml");

pub(super) fn routes() -> OpenApiRouter<Services> {
    OpenApiRouter::new()
        .routes_also_short(routes!(get))
        .routes_also_short(routes!(get_markdown))
        .routes_also_short(routes!(get_badge))
}

impl Resource for Verdict {
    fn page(&self) -> Option<&str> {
        self.url.as_deref()
    }
}

/// Returns the verdict of an execution: whether it meets the rules of its test set.
///
/// The rules are those of the field `Gate` of the test set when the execution was requested. In
/// addition, an execution has to be complete: canceled ones, and those with aborted test cases, do
/// not pass.
#[utoipa::path(
    get, path = "/api/projects/{projectId}/executions/{executionId}/verdict",
    operation_id = "get_verdict", tag = "Executions",
    extensions(("x-grpc-method" = json!("/assay.execution.v1.ExecutionService/GetVerdict"))),
    responses((status = OK, description = "The verdict", body = Verdict)),
)]
async fn get(
    executions: State<Executions>,
    caller: Caller,
    path: Path<(String, String)>,
) -> Result<Json<Verdict>, Problem> {
    Ok(Json(verdict(executions, &caller, path).await?))
}

/// Returns the verdict of an execution as Markdown, for instance for a comment of a pull request.
#[utoipa::path(
    get, path = "/api/projects/{projectId}/executions/{executionId}/verdict.md",
    operation_id = "get_verdict_as_markdown", tag = "Executions",
    extensions(("x-grpc-method" = json!("/assay.execution.v1.ExecutionService/GetVerdict"))),
    responses((status = OK, description = "The verdict", body = String,
        content_type = "text/markdown", example = json!(markdown::EXAMPLE))),
)]
async fn get_markdown(
    executions: State<Executions>,
    caller: Caller,
    path: Path<(String, String)>,
) -> Result<Response, Problem> {
    let text = markdown::of(&verdict(executions, &caller, path).await?);
    Ok(([(CONTENT_TYPE, MARKDOWN)], text).into_response())
}

/// Returns the verdict of an execution as a badge.
#[utoipa::path(
    get, path = "/api/projects/{projectId}/executions/{executionId}/verdict.svg",
    operation_id = "get_verdict_as_badge", tag = "Executions",
    extensions(("x-grpc-method" = json!("/assay.execution.v1.ExecutionService/GetVerdict"))),
    responses((status = OK, description = "The badge", body = String,
        content_type = "image/svg+xml", example = json!(badge::EXAMPLE))),
)]
async fn get_badge(
    executions: State<Executions>,
    caller: Caller,
    path: Path<(String, String)>,
) -> Result<Response, Problem> {
    let badge = badge::of(verdict(executions, &caller, path).await?.state());
    Ok(([(CONTENT_TYPE, SVG)], badge).into_response())
}

async fn verdict(
    State(mut executions): State<Executions>,
    caller: &Caller,
    Path((project_id, execution_id)): Path<(String, String)>,
) -> Result<Verdict, Problem> {
    let request = GetVerdictRequest { project_id: unless_zero(project_id), execution_id };
    Ok(executions.get_verdict(caller.call(request)).await?.into_inner())
}
