//! Media types of uploaded results.

use axum::extract::{FromRequest, Request};
use serde_json::{Value, json};
use utoipa::ToSchema;

use crate::{body::media_type, problem::Problem, upload::Upload};

/// A JUnit report for the documentation.
pub(crate) const EXAMPLE: &str = r#"<testsuite name="checkout" tests="1">
  <testcase classname="checkout" name="pay_by_card" time="8.3"/>
</testsuite>
"#;

/// Description of the body of an upload of reports.
pub(super) const REPORTS: &str = "The report, in one or several files. A body that is a single file \
    may also be sent without a form, as `application/xml`, `text/xml`, `application/json`, \
    `application/x-ndjson`, `text/plain` or `application/zip`.";

/// A line with a result, for the documentation.
pub(super) const LINE: &str =
    "{\"Identifier\":\"checkout.pay_by_card\",\"InstanceNr\":1,\"Result\":\"Passed\"}\n";

/// A log for the documentation.
pub(super) const LOG: &str = "09:30:04 The bank said yes\n";

/// Description of the body of an upload of an artifact.
pub(super) const ARTIFACT: &str = "The file. It may also be sent without a form, as the body of any \
    other media type, which is then the one of the file.";

/// Returns a CTRF report for the documentation.
pub(crate) fn ctrf_example() -> Value {
    json!({
        "reportFormat": "CTRF",
        "specVersion": "1.0.0",
        "results": {
            "tool": { "name": "checkout-tests" },
            "summary": {
                "tests": 1, "passed": 1, "failed": 0, "skipped": 0, "pending": 0, "other": 0,
                "start": 1_772_443_804_100_u64, "stop": 1_772_443_812_400_u64,
            },
            "tests": [{
                "name": "pay_by_card", "suite": ["checkout"], "status": "passed", "duration": 8300,
            }],
        },
    })
}

/// Results as a JSON array, or one per line.
pub(super) struct ResultsUpload {
    pub(super) lines: bool,
    pub(super) upload: Upload,
}

impl<S: Sync> FromRequest<S> for ResultsUpload {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &S) -> Result<Self, Problem> {
        let lines = match media_type(request.headers()).as_deref() {
            None | Some("application/json") => false,
            Some("application/x-ndjson" | "application/ndjson" | "application/jsonl") => true,
            _ => {
                let expected = "Content-Type: must be application/json or application/x-ndjson";
                return Err(Problem::unsupported(expected));
            }
        };
        Ok(Self { lines, upload: Upload::file(request)? })
    }
}

/// A report of a test tool in one or several files. The execution service recognizes its format by
/// its contents.
pub(super) struct ReportUpload(pub(super) Upload);

impl<S: Sync> FromRequest<S> for ReportUpload {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &S) -> Result<Self, Problem> {
        match media_type(request.headers()).as_deref() {
            Some(
                "application/xml"
                | "text/xml"
                | "application/json"
                | "application/x-ndjson"
                | "application/ndjson"
                | "application/jsonl"
                | "text/plain"
                | "application/zip",
            ) => Upload::file(request).map(Self),
            Some("multipart/form-data") => Upload::form(request).await.map(Self),
            _ => Err(Problem::unsupported(
                "Content-Type: must be application/xml, text/xml, application/json, \
                 application/x-ndjson, text/plain, application/zip or multipart/form-data",
            )),
        }
    }
}

/// A report in CTRF.
#[derive(ToSchema)]
#[schema(value_type = Object)]
pub(crate) struct JsonReport(());

/// A form with reports. Each may have a format of its own.
#[derive(ToSchema)]
#[expect(dead_code, reason = "only documents the form, which is streamed")]
pub(super) struct ReportsInput {
    /// The file as written by the test tool. Files in fields of any other name are reports too.
    #[schema(value_type = String, format = Binary)]
    file: Vec<u8>,
    /// Further files. Files of Allure results together are one report.
    #[schema(value_type = Vec<String>, format = Binary, required = false)]
    files: Option<Vec<u8>>,
    /// The files that reports refer to. The name of each is the path in the report.
    #[schema(value_type = Vec<String>, format = Binary, required = false)]
    attachment: Option<Vec<u8>>,
}

/// A form with one file.
#[derive(ToSchema)]
#[expect(dead_code, reason = "only documents the form, which is streamed")]
pub(super) struct ArtifactInput {
    /// The file. The media type of the field is that of the file.
    #[schema(value_type = String, format = Binary)]
    file: Vec<u8>,
}
