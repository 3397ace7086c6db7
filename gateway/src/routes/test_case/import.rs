//! `…/testcases/import`.

use assay_auth::Caller;
use assay_proto::catalog::{
    ImportFormat, ImportTestCasesRequest, ImportTestCasesTarget, ImportedTestCase, TestCaseInput,
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
    upload::{PATIENCE, Piece, Upload},
};

pub(in crate::routes) fn routes() -> OpenApiRouter<Services> {
    OpenApiRouter::new().routes(routes!(import))
}

/// Rows on their way to the catalog.
struct Rows {
    format: ImportFormat,
    exact: bool,
    upload: Upload,
}

/// How an import is read.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct ImportQuery {
    /// Whether the cells of CSV are taken as they are. Otherwise the apostrophe is removed that an
    /// export puts before what a spreadsheet would take for a formula.
    #[serde(default)]
    exact: bool,
}

impl<S: Send + Sync> FromRequest<S> for Rows {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        let (mut parts, body) = request.into_parts();
        let Query(query) = Query::<ImportQuery>::from_request_parts(&mut parts, state).await?;
        let request = Request::from_parts(parts, body);
        let format = match media_type(request.headers()).as_deref() {
            None | Some("application/json") => ImportFormat::Json,
            Some("application/x-ndjson" | "application/ndjson" | "application/jsonl") => {
                ImportFormat::Ndjson
            }
            Some("text/csv") => ImportFormat::Csv,
            _ => {
                let expected = "application/json, application/x-ndjson or text/csv is expected";
                return Err(Problem::unsupported(expected));
            }
        };
        Ok(Self { format, exact: query.exact, upload: Upload::whole(request)? })
    }
}

/// Creates and changes test cases, up to 10,000 at a time, all or none.
///
/// A row whose `Identifier` an active test case of the project has changes what the row says of it,
/// `Name` and `Description`; any other creates a test case, with an identifier that is made if the
/// row has none. Answers what became of each row, in their order. What an export answers can be
/// imported as it is: other fields are ignored. In CSV (RFC 4180, UTF-8) the first line names the
/// columns.
#[utoipa::path(
    post, path = "/api/projects/{projectId}/testcases/import",
    operation_id = "import_test_cases", tag = "Test cases", params(ImportQuery),
    request_body(description = "The test cases, a row each", content(
        (Vec<TestCaseInput> = "application/json"),
        (TestCaseInput = "application/x-ndjson"),
        (String = "text/csv", example = "Identifier,Name,Description\ncheckout.pay_by_card,Pay by card,\n"),
    )),
    extensions(("x-grpc-method" = json!("/assay.catalog.v1.ImportService/ImportTestCases"))),
    responses((status = OK, description = "What became of the rows", body = [ImportedTestCase])),
)]
async fn import(
    State(mut imports): State<Imports>,
    caller: Caller,
    Path(project_id): Path<String>,
    Rows { format, exact, upload }: Rows,
) -> Result<List, Problem> {
    let target = Some(ImportTestCasesTarget { project_id, format: format.into(), exact });
    let first = ImportTestCasesRequest { target, ..Default::default() };
    let next = |Piece { chunk, last, .. }| ImportTestCasesRequest { target: None, chunk, last };
    let imported = upload.send(first, next, async |messages| {
        imports.import_test_cases(caller.call_within(PATIENCE, messages)).await
    });
    List::whole(imported.await?).await
}
