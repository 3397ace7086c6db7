//! `…/testcases/import`.

use assay_auth::Caller;
use assay_proto::catalog::{
    ImportFormat, ImportTestCasesRequest, ImportTestCasesTarget, ImportedTestCase, TestCaseRowInput,
};
use axum::extract::{FromRequest, FromRequestParts, Request, State};
use serde::Deserialize;
use utoipa::IntoParams;
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    body::media_type,
    list::List,
    path::Path,
    problem::Problem,
    query::Query,
    services::{Imports, Services},
    upload::{Chunk, UPLOAD_TIMEOUT, Upload},
};

pub(in crate::routes) fn routes() -> OpenApiRouter<Services> {
    OpenApiRouter::new().routes(routes!(import))
}

/// Rows that are streamed to the catalog.
struct ImportUpload {
    format: ImportFormat,
    exact: bool,
    upload: Upload,
}

/// Options of an import.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct ImportQuery {
    /// Whether cells of CSV are imported unchanged. By default, the apostrophe that an export puts
    /// before formulas is removed.
    #[serde(default)]
    exact: bool,
}

impl FromRequest<Services> for ImportUpload {
    type Rejection = Problem;

    async fn from_request(request: Request, services: &Services) -> Result<Self, Problem> {
        let (mut parts, body) = request.into_parts();
        let Query(query) = Query::<ImportQuery>::from_request_parts(&mut parts, services).await?;
        let request = Request::from_parts(parts, body);
        let format = match media_type(request.headers()).as_deref() {
            None | Some("application/json") => ImportFormat::Json,
            Some("application/x-ndjson" | "application/ndjson" | "application/jsonl") => {
                ImportFormat::Ndjson
            }
            Some("text/csv") => ImportFormat::Csv,
            _ => {
                let expected =
                    "Content-Type: must be application/json, application/x-ndjson or text/csv";
                return Err(Problem::unsupported(expected));
            }
        };
        Ok(Self { format, exact: query.exact, upload: Upload::file(request)? })
    }
}

/// Imports up to 10,000 test cases, all or none.
///
/// A row with the `Identifier` of an active test case of the project changes its `Name` and
/// `Description`, as far as the row has them. Any other row creates a test case, whose identifier
/// is generated if the row has none. In JSON, a row can have the plans of a test case that has none
/// yet. The response has the outcome of each row, in their order. An
/// export can be imported unchanged, since other fields are ignored. In CSV (RFC 4180, UTF-8), the
/// first line names the columns.
#[utoipa::path(
    post, path = "/api/projects/{projectId}/testcases/import",
    operation_id = "import_test_cases", tag = "Test cases", params(ImportQuery),
    request_body(content = Vec<TestCaseRowInput>,
        description = "The test cases, one per row. The same as `application/x-ndjson` has one per line; \
            `text/csv` has the columns `Identifier`, `Name` and `Description`."),
    extensions(("x-grpc-method" = json!("/assay.catalog.v1.ImportService/ImportTestCases"))),
    responses((status = OK, description = "The outcomes of the rows", body = [ImportedTestCase])),
)]
async fn import(
    State(mut imports): State<Imports>,
    caller: Caller,
    Path(project_id): Path<String>,
    ImportUpload { format, exact, upload }: ImportUpload,
) -> Result<List, Problem> {
    let target = Some(ImportTestCasesTarget { project_id, format: format.into(), exact });
    let first = ImportTestCasesRequest { target, ..Default::default() };
    let next =
        |Chunk { bytes, last, .. }| ImportTestCasesRequest { target: None, chunk: bytes, last };
    let imported = upload.send(first, next, async |messages| {
        imports.import_test_cases(caller.call_within(UPLOAD_TIMEOUT, messages)).await
    });
    List::whole(imported.await?).await
}
