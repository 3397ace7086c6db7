//! The media types that results come in.

use axum::extract::{FromRequest, Request};
use utoipa::ToSchema;

use crate::{body::media_type, problem::Problem, upload::Upload};

/// A report, for the documentation.
pub(crate) const EXAMPLE: &str = r#"<testsuite name="checkout" tests="1">
  <testcase classname="checkout" name="pay_by_card" time="8.3"/>
</testsuite>
"#;

/// Results as an array, or one a line.
pub(super) struct Reported {
    pub(super) lines: bool,
    pub(super) upload: Upload,
}

impl<S: Sync> FromRequest<S> for Reported {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &S) -> Result<Self, Problem> {
        let lines = match media_type(request.headers()).as_deref() {
            None | Some("application/json") => false,
            Some("application/x-ndjson" | "application/ndjson" | "application/jsonl") => true,
            _ => {
                let expected = "application/json or application/x-ndjson is expected";
                return Err(Problem::unsupported(expected));
            }
        };
        Ok(Self { lines, upload: Upload::whole(request)? })
    }
}

/// The report of a test run, in one file or several.
pub(super) struct TestRun(pub(super) Upload);

impl<S: Sync> FromRequest<S> for TestRun {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &S) -> Result<Self, Problem> {
        match media_type(request.headers()).as_deref() {
            Some("application/xml" | "text/xml") => Upload::whole(request).map(Self),
            Some("multipart/form-data") => Upload::files(request).await.map(Self),
            _ => Err(Problem::unsupported("application/xml or multipart/form-data is expected")),
        }
    }
}

/// A form with JUnit files, under any names.
#[derive(ToSchema)]
#[expect(dead_code, reason = "only its description is used: a form is read as it comes")]
pub(super) struct Files {
    /// As the test tools wrote them.
    #[schema(value_type = Vec<String>, format = Binary)]
    file: Vec<u8>,
}
