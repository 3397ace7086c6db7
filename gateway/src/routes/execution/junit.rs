//! `…/executions/{executionId}/junit`.

use assay_auth::Caller;
use assay_proto::execution::ExportResultsRequest;
use axum::{
    extract::State,
    response::{IntoResponse, Response},
};
use http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    download,
    path::Path,
    problem::Problem,
    services::{Results, Services},
};

pub(super) fn routes() -> OpenApiRouter<Services> {
    OpenApiRouter::new().routes(routes!(export))
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
        content_type = "application/xml",
        example = json!(super::super::results::media::EXAMPLE))),
)]
async fn export(
    State(mut results): State<Results>,
    caller: Caller,
    Path((project_id, execution_id)): Path<(String, String)>,
) -> Result<Response, Problem> {
    let name = format!("attachment; filename=\"{execution_id}.xml\"");
    let request = ExportResultsRequest { project_id, execution_id };
    let file = results.export_results(caller.call(request)).await?.into_inner();
    let body = download::body(file, |part| part.chunk).await?;
    let headers = [(CONTENT_TYPE, "application/xml".to_owned()), (CONTENT_DISPOSITION, name)];
    Ok((headers, body).into_response())
}
