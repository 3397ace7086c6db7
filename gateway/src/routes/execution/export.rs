//! `…/executions/{executionId}/junit`, `…/ctrf` and `…/results`.

use assay_auth::Caller;
use assay_proto::execution::{ExportResultsRequest, ReportFormat};
use axum::{
    extract::State,
    response::{IntoResponse, Response},
};
use http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    download,
    path::{Path, ShortRoutes},
    problem::Problem,
    routes::media,
    services::{Results, Services},
};

pub(super) fn routes() -> OpenApiRouter<Services> {
    OpenApiRouter::new()
        .routes_also_short(routes!(export))
        .routes_also_short(routes!(export_as_ctrf))
        .routes_also_short(routes!(export_as_lines))
}

/// Exports an execution as JUnit XML.
///
/// Each run of a test is a `testcase`, and its steps describe its failures. Results that JUnit does
/// not have, such as `Aborted`, are written so that other tools read them as errors, and an upload
/// of the file restores them.
#[utoipa::path(
    get, path = "/api/projects/{projectId}/executions/{executionId}/junit",
    operation_id = "export_results", tag = "Results",
    extensions(("x-grpc-method" = json!("/assay.execution.v1.ResultService/ExportResults"))),
    responses((status = OK, description = "The report", body = String,
        content_type = "application/xml", example = json!(media::EXAMPLE))),
)]
async fn export(
    results: State<Results>,
    caller: Caller,
    path: Path<(String, String)>,
) -> Result<Response, Problem> {
    file(results, &caller, path, ReportFormat::Junit, ("xml", "application/xml")).await
}

/// Exports an execution as CTRF (Common Test Report Format).
///
/// Each instance of a test is a test with its attempts.
#[utoipa::path(
    get, path = "/api/projects/{projectId}/executions/{executionId}/ctrf",
    operation_id = "export_results_as_ctrf", tag = "Results",
    extensions(("x-grpc-method" = json!("/assay.execution.v1.ResultService/ExportResults"))),
    responses((status = OK, description = "The report", body = inline(media::JsonReport),
        content_type = "application/json", example = json!(media::ctrf_example()))),
)]
async fn export_as_ctrf(
    results: State<Results>,
    caller: Caller,
    path: Path<(String, String)>,
) -> Result<Response, Problem> {
    file(results, &caller, path, ReportFormat::Ctrf, ("json", "application/json")).await
}

/// Returns the results of an execution as clients report them, one JSON object per line.
///
/// Each attempt at an instance is a line, in the order of the test reports, instances and attempts.
/// Links to artifacts are their names. The lines of an execution that has ended can be reported to
/// another one, which then has the same results. Once the results have expired, each test report is
/// a line without steps.
#[utoipa::path(
    get, path = "/api/projects/{projectId}/executions/{executionId}/results",
    operation_id = "export_results_as_lines", tag = "Results",
    extensions(("x-grpc-method" = json!("/assay.execution.v1.ResultService/ExportResults"))),
    responses((status = OK, description = "The results", body = String,
        content_type = "application/x-ndjson", example = json!(media::LINE))),
)]
async fn export_as_lines(
    results: State<Results>,
    caller: Caller,
    path: Path<(String, String)>,
) -> Result<Response, Problem> {
    file(results, &caller, path, ReportFormat::Lines, ("ndjson", "application/x-ndjson")).await
}

async fn file(
    State(mut results): State<Results>,
    caller: &Caller,
    Path((project_id, execution_id)): Path<(String, String)>,
    format: ReportFormat,
    (extension, media_type): (&str, &'static str),
) -> Result<Response, Problem> {
    let name = format!("attachment; filename=\"{execution_id}.{extension}\"");
    let request = ExportResultsRequest { project_id, execution_id, format: format.into() };
    let file = results.export_results(caller.call(request)).await?.into_inner();
    let body = download::body(file, |part| part.chunk).await?;
    let headers = [(CONTENT_TYPE, media_type.to_owned()), (CONTENT_DISPOSITION, name)];
    Ok((headers, body).into_response())
}
