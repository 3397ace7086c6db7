//! `…/executions/{executionId}/report.html` and `…/report.pdf`.

use assay_auth::Caller;
use axum::{
    extract::State,
    response::{IntoResponse, Response},
};
use http::header::{CONTENT_DISPOSITION, CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    document::{Documents, File},
    path::{Path, ShortRoutes},
    problem::Problem,
    services::Services,
};

/// A document for the documentation.
const HTML: &str = "<!DOCTYPE html><html lang=\"en\"><head><title>Nightly regression: test report</title></head>\
    <body><main><h1>Nightly regression: test report</h1></main></body></html>\n";
const PDF: &str = "%PDF-1.7";

/// The document runs nothing and loads nothing, even if a browser shows it instead of saving it.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; sandbox";

pub(super) fn routes() -> OpenApiRouter<Services> {
    OpenApiRouter::new().routes_also_short(routes!(get_html)).routes_also_short(routes!(get_pdf))
}

/// Returns the report of an execution as one HTML file.
///
/// It has the verdict with its reasons, the numbers, the causes of failures, up to 100 of the tests that fail with their
/// steps and pictures, and up to 2,000 tests, those that fail first. It says what is left out. Scripts and files of
/// other hosts are not needed. The template of the project decides on order, texts, color and logo; if it has a
/// fault, a note at the top of the report names it.
#[utoipa::path(
    get, path = "/api/projects/{projectId}/executions/{executionId}/report.html",
    operation_id = "get_report_as_html", tag = "Executions",
    extensions(("x-grpc-method" =
        json!("/assay.execution.v1.ExecutionService/GetExecutionSummary"))),
    responses((status = OK, description = "The report", body = String,
        content_type = "text/html", example = json!(HTML))),
)]
async fn get_html(
    State(documents): State<Documents>,
    caller: Caller,
    Path(path): Path<(String, String)>,
) -> Result<Response, Problem> {
    let file = documents.html(&caller, path).await?;
    Ok(download(file, "html", "text/html; charset=utf-8"))
}

/// Returns the report of an execution as PDF.
///
/// It has the contents of the HTML file on up to 200 pages, tagged for assistive technology by PDF/UA-1, and
/// suited for archives by PDF/A-2a.
#[utoipa::path(
    get, path = "/api/projects/{projectId}/executions/{executionId}/report.pdf",
    operation_id = "get_report_as_pdf", tag = "Executions",
    extensions(("x-grpc-method" =
        json!("/assay.execution.v1.ExecutionService/GetExecutionSummary"))),
    responses((status = OK, description = "The report", body = String,
        content_type = "application/pdf", example = json!(PDF))),
)]
async fn get_pdf(
    State(documents): State<Documents>,
    caller: Caller,
    Path(path): Path<(String, String)>,
) -> Result<Response, Problem> {
    let file = documents.pdf(&caller, path).await?;
    Ok(download(file, "pdf", "application/pdf"))
}

fn download(
    File { execution_id, body }: File,
    extension: &str,
    media_type: &'static str,
) -> Response {
    let headers = [
        (CONTENT_TYPE, media_type.to_owned()),
        (CONTENT_DISPOSITION, format!("attachment; filename=\"{execution_id}.{extension}\"")),
        (CONTENT_SECURITY_POLICY, POLICY.to_owned()),
    ];
    (headers, body).into_response()
}
