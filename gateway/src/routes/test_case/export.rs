//! `…/testcases/export`.

use std::borrow::Cow;

use assay_auth::Caller;
use assay_proto::{
    Page, PlanStatus, ReportStatus, TestResult,
    catalog::{ListTestCasesRequest, Shelf, TestCaseBatch, TestCaseEntry},
    name_of,
};
use axum::{
    body::Body,
    extract::{FromRequestParts, State},
    response::{IntoResponse, Response},
};
use http::{
    HeaderMap, StatusCode,
    header::{ACCEPT, CONTENT_DISPOSITION, CONTENT_TYPE},
    request::Parts,
};
use serde::{Deserialize, Serialize};
use tonic::Streaming;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    array::{self, Failure},
    list,
    path::Path,
    problem::Problem,
    query::Query,
    services::{Services, TestCases},
};

pub(super) fn routes() -> OpenApiRouter<Services> {
    OpenApiRouter::new().routes(routes!(export))
}

/// How an export is written down.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum ExportFormat {
    Json,
    Ndjson,
    Csv,
}

impl ExportFormat {
    const ALL: [Self; 3] = [Self::Json, Self::Ndjson, Self::Csv];

    fn media_type(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Ndjson => "application/x-ndjson",
            Self::Csv => "text/csv",
        }
    }

    /// The first one that a client accepts.
    fn accepted(headers: &HeaderMap) -> Option<Self> {
        let Some(accept) = headers.get(ACCEPT) else { return Some(Self::Json) };
        let accept = accept.to_str().unwrap_or_default().to_ascii_lowercase();
        let mut kinds =
            accept.split(',').map(|kind| kind.split(';').next().unwrap_or_default().trim());
        let fits = |kind: &str, format: Self| {
            let name = format.media_type();
            kind == "*/*"
                || kind == name
                || kind.strip_suffix('*').is_some_and(|part| name.starts_with(part))
        };
        kinds.find_map(|kind| Self::ALL.into_iter().find(|format| fits(kind, *format)))
    }
}

/// What to export, and how.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct ExportQuery {
    /// The format; where absent, the first one in `Accept`, or JSON.
    #[param(value_type = Option<ExportFormat>, inline)]
    format: Option<String>,
    /// Only test cases whose name or identifier contains this text, in any case.
    #[param(example = "pay")]
    q: Option<String>,
    /// Whether the cells of CSV are written as they are. Otherwise an apostrophe is put before what
    /// a spreadsheet would take for a formula.
    #[serde(default)]
    exact: bool,
}

/// What to export, and how.
struct Wanted {
    format: ExportFormat,
    q: Option<String>,
    exact: bool,
}

impl<S: Send + Sync> FromRequestParts<S> for Wanted {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let Query(query) = Query::<ExportQuery>::from_request_parts(parts, state).await?;
        let format = match query.format {
            Some(name) => assay_proto::value_of(&name)
                .ok_or_else(|| Problem::invalid("format", "must be json, ndjson or csv"))?,
            None => ExportFormat::accepted(&parts.headers).ok_or_else(|| {
                let offered = "application/json, application/x-ndjson and text/csv are offered";
                Problem::new(StatusCode::NOT_ACCEPTABLE, "not_acceptable", offered)
            })?,
        };
        Ok(Self { format, q: query.q, exact: query.exact })
    }
}

/// Answers the test cases of a project that are not archived, newest first, in a format of choice.
///
/// An import takes what this answers. In CSV, a cell that a spreadsheet would take for a formula (one
/// that begins with `=`, `+`, `-`, `@`, a tab or a carriage return) begins with an apostrophe, which an
/// import removes. With `exact=true` cells are written as they are, and an import with `exact=true`
/// reads them so.
#[utoipa::path(
    get, path = "/api/projects/{projectId}/testcases/export",
    operation_id = "list_test_cases_as_export", tag = "Test cases", params(ExportQuery),
    extensions(("x-grpc-method" = json!("/assay.catalog.v1.TestCaseService/ListTestCases"))),
    responses((
        status = OK, description = "The test cases",
        content(
            (Vec<TestCaseEntry> = "application/json"),
            (TestCaseEntry = "application/x-ndjson"),
            (String = "text/csv", example = "Id,Identifier,Name,Description,LastPlanStatus,\
                LastReportStatus,LastResult,LastSwName,LastSwIdentifier\r\n\
                019cade2-11c0-7b21-8d4f-0a96c3e15f72,checkout.pay_by_card,Pay by card,,\
                ReadyForExecution,InReview,Passed,Web shop,2.4.1\r\n"),
        ),
        headers(("Content-Disposition" = String, description = "A name for the file")),
    )),
)]
async fn export(
    State(mut cases): State<TestCases>,
    caller: Caller,
    Path(project_id): Path<String>,
    Wanted { format, q, exact }: Wanted,
) -> Result<Response, Problem> {
    let page = Some(Page { q, ..Page::default() });
    let request = ListTestCasesRequest { project_id, page, shelf: Shelf::Unspecified.into() };
    let body = cases.list_test_cases(caller.call(request)).await?;
    let body = written(format, exact, body).await?;
    let file = format!("attachment; filename=\"testcases.{}\"", name_of(format));
    let headers = [(CONTENT_TYPE, format.media_type().to_owned()), (CONTENT_DISPOSITION, file)];
    Ok((headers, body).into_response())
}

async fn written(
    format: ExportFormat,
    exact: bool,
    batches: tonic::Response<Streaming<TestCaseBatch>>,
) -> Result<Body, Problem> {
    let (_, parts) = list::parts(batches).await?;
    Ok(match format {
        ExportFormat::Json => array::body(b"[".to_vec(), parts, b"]"),
        ExportFormat::Ndjson => array::streamed(Vec::new(), parts, lines, b""),
        ExportFormat::Csv => {
            let records = move |cases| csv_records(cases, exact);
            array::streamed(HEADER.to_vec(), parts, records, b"")
        }
    })
}

fn lines(cases: Vec<TestCaseEntry>) -> Result<Vec<u8>, Failure> {
    let mut text = Vec::new();
    for case in cases {
        serde_json::to_writer(&mut text, &case)?;
        text.push(b'\n');
    }
    Ok(text)
}

const HEADER: &[u8] = b"Id,Identifier,Name,Description,LastPlanStatus,LastReportStatus,LastResult,\
    LastSwName,LastSwIdentifier\r\n";

fn csv_records(cases: Vec<TestCaseEntry>, exact: bool) -> Result<Vec<u8>, Failure> {
    let terminator = csv::Terminator::CRLF;
    let mut records = csv::WriterBuilder::new().terminator(terminator).from_writer(Vec::new());
    for case in cases {
        let plan_status = name::<PlanStatus>(case.last_plan_status);
        let report_status = name::<ReportStatus>(case.last_report_status);
        let result = name::<TestResult>(case.last_result);
        let cells = [
            &case.id,
            &case.identifier,
            &case.name,
            &case.description,
            &plan_status,
            &report_status,
            &result,
            case.last_sw_name.as_deref().unwrap_or_default(),
            case.last_sw_identifier.as_deref().unwrap_or_default(),
        ];
        let cell = |cell| if exact { Cow::Borrowed(cell) } else { defused(cell) };
        records.write_record(cells.map(|text: &str| cell(text).into_owned().into_bytes()))?;
    }
    Ok(records.into_inner()?)
}

/// A cell that a spreadsheet takes for text. One that would be read back as another gets an apostrophe
/// too, so that no two cells are written alike.
fn defused(cell: &str) -> Cow<'_, str> {
    let formula = cell.trim_start_matches('\'').starts_with(['=', '+', '-', '@', '\t', '\r']);
    if formula { format!("'{cell}").into() } else { cell.into() }
}

/// The name of a value; empty for none.
fn name<E: TryFrom<i32> + Serialize>(number: Option<i32>) -> String {
    number.and_then(|number| E::try_from(number).ok()).map(name_of).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_cell_is_a_formula_unless_the_export_is_exact() {
        for formula in ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "'=1"] {
            assert_eq!(defused(formula), format!("'{formula}"));
        }
        for text in ["", "a=1", "1-1", "'tis", "'"] {
            assert_eq!(defused(text), text);
        }
        let case = TestCaseEntry { name: "=1+1".into(), ..TestCaseEntry::default() };
        let written = |exact| String::from_utf8(csv_records(vec![case.clone()], exact).unwrap());
        assert_eq!(written(false).unwrap(), ",,'=1+1,,,,,,\r\n");
        assert_eq!(written(true).unwrap(), ",,=1+1,,,,,,\r\n");
    }
}
