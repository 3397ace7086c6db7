//! Why a request failed, as a client is told: RFC 9457.

mod status;

use std::{borrow::Cow, time::Duration};

use assay_proto::{Fault, Violation};
use assay_runtime::trace;
use axum::{
    Json,
    extract::Request,
    middleware::Next,
    response::{IntoResponse, Response},
};
use http::{
    HeaderValue, StatusCode,
    header::{CONTENT_LENGTH, CONTENT_TYPE, ETAG, IF_MATCH, RETRY_AFTER, WWW_AUTHENTICATE},
};
use serde::Serialize;
use utoipa::ToSchema;

use crate::nested::Nested;

/// The code of a change that was based on an outdated version.
const STALE: &str = "stale_data_version";

/// Why a request failed. It becomes a body in [`finish`], where the request is known, too.
#[derive(Clone, Debug)]
pub(crate) struct Problem {
    status: StatusCode,
    code: Cow<'static, str>,
    detail: Cow<'static, str>,
    violations: Vec<Violation>,
    retry_after: Option<Duration>,
}

impl Problem {
    pub(crate) fn new(
        status: StatusCode,
        code: impl Into<Cow<'static, str>>,
        detail: impl Into<Cow<'static, str>>,
    ) -> Self {
        let (code, detail) = (code.into(), detail.into());
        Self { status, code, detail, violations: Vec::new(), retry_after: None }
    }

    /// The body cannot be read.
    pub(crate) fn malformed(detail: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "malformed", detail)
    }

    /// A field of the body, or a parameter, can be read but is not right.
    pub(crate) fn invalid(field: impl Into<String>, problem: impl Into<String>) -> Self {
        Fault::invalid(field, problem).into()
    }

    pub(crate) fn too_large() -> Self {
        let detail = "a body may have 1 MiB; a record that is sent back, or test results, 32 MiB";
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", detail)
    }

    pub(crate) fn unsupported(detail: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported_media_type", detail)
    }

    pub(crate) fn too_slow() -> Self {
        Self::new(StatusCode::REQUEST_TIMEOUT, "request_timeout", "the body came too slowly")
    }

    /// More is worked on already than should be.
    pub(crate) fn overloaded() -> Self {
        let detail = "there is too much to do; try again later";
        let problem = Self::new(StatusCode::SERVICE_UNAVAILABLE, "overloaded", detail);
        Self { retry_after: Some(Duration::from_secs(1)), ..problem }
    }

    pub(crate) fn timed_out() -> Self {
        Self::new(StatusCode::GATEWAY_TIMEOUT, "timeout", "the answer took too long")
    }

    /// The same for a record that never was, that is gone, or that belongs to somebody else.
    pub(crate) fn not_found() -> Self {
        Self::of(StatusCode::NOT_FOUND)
    }

    pub(crate) fn internal() -> Self {
        Self::of(StatusCode::INTERNAL_SERVER_ERROR)
    }

    /// What a status alone says. Routes that do not exist are answered with one.
    pub(crate) fn of(status: StatusCode) -> Self {
        let (code, detail) = match status {
            StatusCode::NOT_FOUND => ("not_found", "there is no such record"),
            StatusCode::METHOD_NOT_ALLOWED => ("method_not_allowed", "see the header Allow"),
            StatusCode::NOT_ACCEPTABLE => ("not_acceptable", "no encoding is acceptable"),
            StatusCode::SERVICE_UNAVAILABLE => ("unavailable", "try again later"),
            status if status.is_client_error() => ("malformed", "the request cannot be understood"),
            _ => ("internal", "something went wrong here; it was recorded under the trace id"),
        };
        Self::new(status, code, detail)
    }

    /// A change with `If-Match` states a precondition; one with a version in its body does not.
    pub(crate) fn of_precondition(mut self, stated: bool) -> Self {
        if stated && self.code == STALE {
            self.status = StatusCode::PRECONDITION_FAILED;
        }
        self
    }

    /// The same, with fields named where the client has sent them.
    pub(crate) fn within(mut self, nested: &Nested) -> Self {
        for violation in &mut self.violations {
            violation.field = nested.locate(std::mem::take(&mut violation.field));
        }
        self
    }

    /// A field that was no part of a body was a parameter of the query: `SubjectId` is `subjectId`.
    pub(crate) fn of_parameters(mut self) -> Self {
        for Violation { field, .. } in &mut self.violations {
            if !field.contains('/') && field.is_ascii() {
                field.get_mut(..1).into_iter().for_each(str::make_ascii_lowercase);
            }
        }
        self
    }

    /// As it is answered to somebody who wants to change a project.
    pub(crate) fn into_example(self) -> Document {
        let instance = "/api/projects".to_owned();
        let trace_id = Some("0af7651916cd43dd8448eb211c80319c".to_owned());
        Document { trace_id, ..self.into_document(instance) }
    }

    fn into_document(self, instance: String) -> Document {
        let invalid = self.status == StatusCode::UNPROCESSABLE_ENTITY;
        let errors = self.violations.into_iter().map(FieldProblem::from).collect();
        Document {
            kind: format!("urn:assay:problem:{}", self.code),
            title: title(&self.code),
            status: self.status.as_u16(),
            detail: self.detail,
            instance,
            code: self.code,
            trace_id: trace::id(),
            errors: invalid.then_some(errors),
        }
    }
}

impl From<Fault> for Problem {
    fn from(fault: Fault) -> Self {
        tonic::Status::from(fault).into()
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = self.status.into_response();
        let headers = response.headers_mut();
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if let Some(pause) = self.retry_after {
            let whole_seconds = pause.as_secs() + u64::from(pause.subsec_nanos() > 0);
            headers.insert(RETRY_AFTER, whole_seconds.into());
        }
        response.extensions_mut().insert(self);
        response
    }
}

/// Gives every failure its body, whoever it comes from: there are no others.
pub(crate) async fn finish(request: Request, next: Next) -> Response {
    let instance = request.uri().path().to_owned();
    let conditional = request.headers().contains_key(IF_MATCH);
    let mut response = next.run(request).await;
    let status = response.status();
    if !status.is_client_error() && !status.is_server_error() {
        return response;
    }
    let problem = response.extensions_mut().remove().unwrap_or_else(|| Problem::of(status));
    let problem = problem.of_precondition(conditional);
    *response.status_mut() = problem.status;
    let headers = response.headers_mut();
    for obsolete in [CONTENT_LENGTH, ETAG] {
        headers.remove(obsolete);
    }
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
    response.map(|_| Json(problem.into_document(instance)).into_response().into_body())
}

/// Why a request failed (RFC 9457).
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Problem)]
pub(crate) struct Document {
    /// Names the kind of problem: `urn:assay:problem:` and the code.
    #[serde(rename = "type")]
    kind: String,
    /// The kind of problem in words.
    title: String,
    /// The status of the answer.
    status: u16,
    /// What is wrong with this request.
    detail: Cow<'static, str>,
    /// The path of the request.
    instance: String,
    /// The stable name of the kind of problem, for programs to decide by.
    #[schema(example = "stale_data_version")]
    code: Cow<'static, str>,
    /// What to name when asking for help.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    trace_id: Option<String>,
    /// What is wrong with which field; with status 422 only.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    errors: Option<Vec<FieldProblem>>,
}

/// What is wrong with one field.
#[derive(Serialize, ToSchema)]
#[schema(as = FieldProblem)]
pub(crate) struct FieldProblem {
    /// Where the field is in the body, as a JSON pointer (RFC 6901); or `/` and the name of a
    /// query parameter.
    #[schema(example = "/TestCases/3/Id")]
    pointer: String,
    /// What is wrong with it.
    detail: String,
}

impl From<Violation> for FieldProblem {
    fn from(violation: Violation) -> Self {
        let Violation { field, problem: detail } = violation;
        let pointer = if field.is_empty() { field } else { format!("/{field}") };
        Self { pointer, detail }
    }
}

/// `stale_data_version` is `Stale data version`.
fn title(code: &str) -> String {
    let words = code.replace('_', " ");
    let mut letters = words.chars();
    let first = letters.next().map(|letter| letter.to_ascii_uppercase());
    first.into_iter().chain(letters).collect()
}
