//! Media types of uploaded results.

use axum::extract::{FromRequest, Request};
use utoipa::ToSchema;

use crate::{body::media_type, problem::Problem, upload::Upload};

/// A JUnit report for the documentation.
pub(crate) const EXAMPLE: &str = r#"<testsuite name="checkout" tests="1">
  <testcase classname="checkout" name="pay_by_card" time="8.3"/>
</testsuite>
"#;

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

/// A JUnit report in one or several files.
pub(super) struct JunitUpload(pub(super) Upload);

impl<S: Sync> FromRequest<S> for JunitUpload {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &S) -> Result<Self, Problem> {
        match media_type(request.headers()).as_deref() {
            Some("application/xml" | "text/xml") => Upload::file(request).map(Self),
            Some("multipart/form-data") => Upload::form(request).await.map(Self),
            _ => Err(Problem::unsupported(
                "Content-Type: must be application/xml, text/xml or multipart/form-data",
            )),
        }
    }
}

/// A form with JUnit files in fields of any name.
#[derive(ToSchema)]
#[expect(dead_code, reason = "only documents the form, which is streamed")]
pub(super) struct Files {
    /// The files as written by test tools.
    #[schema(value_type = Vec<String>, format = Binary)]
    file: Vec<u8>,
}
