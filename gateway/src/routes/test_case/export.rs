//! `…/testcases/export`.

use std::borrow::Cow;

use assay_auth::Caller;
use assay_proto::{
    Page, PlanStatus, ReportStatus, TestResult,
    catalog::{ListFilter, ListTestCasesRequest, TestCaseBatch, TestCaseEntry},
    is_formula, name_of,
};
use axum::{
    body::Body,
    extract::{FromRequestParts, State},
    response::{IntoResponse, Response},
};
use bytes::Bytes;
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
    routes::classification::Classification,
    services::{Services, TestCases},
};

pub(super) fn routes() -> OpenApiRouter<Services> {
    OpenApiRouter::new().routes(routes!(export))
}

/// The format of an export.
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

    /// Returns the first format that the client accepts.
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

/// The test cases to export, and their format.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct ExportQuery {
    /// The format; by default the first one in `Accept`, or JSON.
    #[param(value_type = Option<ExportFormat>, inline)]
    format: Option<String>,
    /// Export only test cases whose name or identifier contains this text, ignoring case.
    #[param(example = "pay")]
    q: Option<String>,
    /// Whether cells of CSV are written unchanged. By default, an apostrophe is put before text
    /// that a spreadsheet would interpret as a formula.
    #[serde(default)]
    exact: bool,
}

/// The checked parameters of an export.
struct ExportRequest {
    format: ExportFormat,
    q: Option<String>,
    exact: bool,
}

impl FromRequestParts<Services> for ExportRequest {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, services: &Services) -> Result<Self, Problem> {
        let Query(query) = Query::<ExportQuery>::from_request_parts(parts, services).await?;
        let format = match query.format {
            Some(name) => assay_proto::value_of(&name)
                .ok_or_else(|| Problem::invalid("format", "must be json, ndjson or csv"))?,
            None => ExportFormat::accepted(&parts.headers).ok_or_else(|| {
                let offered =
                    "Accept: must include application/json, application/x-ndjson or text/csv";
                Problem::new(StatusCode::NOT_ACCEPTABLE, "not_acceptable", offered)
            })?,
        };
        Ok(Self { format, q: query.q, exact: query.exact })
    }
}

/// Exports the test cases of a project that are not archived, newest first.
///
/// The export can be imported again. In CSV, an apostrophe is put before a cell that a spreadsheet
/// would interpret as a formula (one that begins with `=`, `+`, `-`, `@`, one of these in full width, a
/// tab or a line end), and an import removes it. With `exact=true`, exports and imports do not change cells.
#[utoipa::path(
    get, path = "/api/projects/{projectId}/testcases/export",
    operation_id = "list_test_cases_as_export", tag = "Test cases", params(ExportQuery, Classification),
    extensions(("x-grpc-method" = json!("/assay.catalog.v1.TestCaseService/ListTestCases"))),
    responses((
        status = OK, description = "The test cases",
        content(
            (Vec<TestCaseEntry> = "application/json"),
            (TestCaseEntry = "application/x-ndjson"),
            (String = "text/csv", example = "Id,Identifier,Name,Description,LastPlanStatus,\
                LastReportStatus,LastResult,LastSwName,LastSwIdentifier,Suites,Labels,Links\r\n\
                019cade2-11c0-7b21-8d4f-0a96c3e15f72,checkout.pay_by_card,Pay by card,,\
                ReadyForExecution,InReview,Passed,Web shop,2.4.1,Shop > Checkout,\
                \"tag:smoke, owner:ada\",issue:SHOP-7\r\n"),
        ),
        headers(("Content-Disposition" = String, description = "A name for the file")),
    )),
)]
async fn export(
    State(mut cases): State<TestCases>,
    caller: Caller,
    Path(project_id): Path<String>,
    ExportRequest { format, q, exact }: ExportRequest,
    Query(classification): Query<Classification>,
) -> Result<Response, Problem> {
    let page = Some(Page { q, ..Page::default() });
    let classification = classification.filter();
    let filter = ListFilter::Unspecified.into();
    let request = ListTestCasesRequest { project_id, page, filter, classification };
    let body = cases.list_test_cases(caller.call(request)).await?;
    let body = render(format, exact, body).await?;
    let file = format!("attachment; filename=\"testcases.{}\"", name_of(format));
    let headers = [(CONTENT_TYPE, format.media_type().to_owned()), (CONTENT_DISPOSITION, file)];
    Ok((headers, body).into_response())
}

async fn render(
    format: ExportFormat,
    exact: bool,
    batches: tonic::Response<Streaming<TestCaseBatch>>,
) -> Result<Body, Problem> {
    Ok(match format {
        ExportFormat::Json => list::whole(batches).await?,
        ExportFormat::Ndjson => {
            array::streamed(Vec::new(), list::parsed(batches).await?, lines, b"")
        }
        ExportFormat::Csv => {
            let records = move |cases| csv_records(cases, exact);
            array::streamed(HEADER.to_vec(), list::parsed(batches).await?, records, b"")
        }
    })
}

fn lines(cases: Vec<TestCaseEntry>) -> Result<Bytes, Failure> {
    let mut text = Vec::new();
    for case in cases {
        serde_json::to_writer(&mut text, &case)?;
        text.push(b'\n');
    }
    Ok(text.into())
}

const HEADER: &[u8] = b"Id,Identifier,Name,Description,LastPlanStatus,LastReportStatus,LastResult,\
    LastSwName,LastSwIdentifier,Suites,Labels,Links\r\n";

fn csv_records(cases: Vec<TestCaseEntry>, exact: bool) -> Result<Bytes, Failure> {
    let terminator = csv::Terminator::CRLF;
    let mut records = csv::WriterBuilder::new().terminator(terminator).from_writer(Vec::new());
    for case in cases {
        let plan_status = name::<PlanStatus>(case.last_plan_status);
        let report_status = name::<ReportStatus>(case.last_report_status);
        let result = name::<TestResult>(case.last_result);
        let suites = case.suites.join(" > ");
        let labels = case.labels.iter().map(|label| format!("{}:{}", label.name, label.value));
        let labels = labels.collect::<Vec<_>>().join(", ");
        let links = case.links.iter().map(|link| format!("{}:{}", link.kind, link.target));
        let links = links.collect::<Vec<_>>().join(", ");
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
            &suites,
            &labels,
            &links,
        ];
        let cell = |cell| if exact { Cow::Borrowed(cell) } else { escape_formula(cell) };
        records.write_record(cells.map(|text: &str| cell(text).into_owned().into_bytes()))?;
    }
    Ok(records.into_inner()?.into())
}

/// Puts an apostrophe before a cell that a spreadsheet would interpret as a formula, and before one
/// that an import would otherwise change.
fn escape_formula(cell: &str) -> Cow<'_, str> {
    if is_formula(cell) { format!("'{cell}").into() } else { cell.into() }
}

/// Returns the name of an enum value, or an empty text for none.
fn name<E: TryFrom<i32> + Serialize>(number: Option<i32>) -> String {
    number.and_then(|number| E::try_from(number).ok()).map(name_of).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_cell_is_a_formula_unless_the_export_is_exact() {
        for formula in [
            "=1+1",
            "+1",
            "-1",
            "@SUM(A1)",
            "\t=1",
            "\r=1",
            "\n=1",
            "'=1",
            "\u{ff1d}1",
            "\u{ff20}A1",
        ] {
            assert_eq!(escape_formula(formula), format!("'{formula}"));
        }
        for text in ["", "a=1", "1-1", "'tis", "'"] {
            assert_eq!(escape_formula(text), text);
        }
        let case = TestCaseEntry { name: "=1+1".into(), ..TestCaseEntry::default() };
        let written =
            |exact| String::from_utf8(csv_records(vec![case.clone()], exact).unwrap().into());
        assert_eq!(written(false).unwrap(), ",,'=1+1,,,,,,,,,\r\n");
        assert_eq!(written(true).unwrap(), ",,=1+1,,,,,,,,,\r\n");
    }
}
