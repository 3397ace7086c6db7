//! Problems: the bodies of failed requests (RFC 9457).

mod document;
mod remedy;
pub(crate) mod reportportal;
mod status;
pub(crate) mod testrail;

use std::{borrow::Cow, time::Duration};

use assay_proto::{Fault, Violation};
use axum::{
    Json,
    extract::Request,
    response::{IntoResponse, Response},
};
use http::{
    HeaderMap, HeaderValue, StatusCode, Uri,
    header::{
        CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, ETAG, IF_MATCH, RETRY_AFTER, WWW_AUTHENTICATE,
    },
};
use serde_json::Value;

pub(crate) use self::document::Document;
use crate::nested::Nested;

/// The media type of pages.
const HTML: &str = "text/html; charset=utf-8";

/// The code of a change that was based on an outdated version.
const STALE: &str = "stale_data_version";

/// The reason why a request failed. [`FailedRequest`] turns it into a body.
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

    /// A field of the body, or a parameter, is not valid.
    pub(crate) fn invalid(field: impl Into<String>, problem: impl Into<String>) -> Self {
        Fault::invalid(field, problem).into()
    }

    pub(crate) fn too_large() -> Self {
        let detail = "the body is too large: send at most 1 MiB, 2 MiB with an array of records, \
                      or 32 MiB with an update, whose fields may have 4 MiB, or an upload of results";
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", detail)
    }

    /// The body has more values than one request may have.
    pub(crate) fn too_many_values() -> Self {
        let detail = "the body has too many objects and values: send fewer records in one request";
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", detail)
    }

    pub(crate) fn unsupported(detail: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported_media_type", detail)
    }

    /// The client speaks another version of the protocol tus.
    pub(crate) fn unsupported_version() -> Self {
        let detail = "Tus-Resumable: must be 1.0.0, the version of the protocol";
        Self::new(StatusCode::PRECONDITION_FAILED, "unsupported_version", detail)
    }

    pub(crate) fn too_slow() -> Self {
        let detail = "the body arrived too slowly: send it without pauses of more than 10 seconds";
        Self::new(StatusCode::REQUEST_TIMEOUT, "request_timeout", detail)
    }

    /// A file of this size in bytes has no byte of the requested range.
    pub(crate) fn unsatisfiable(size: i64) -> Self {
        let detail = format!("Range: the file has {size} bytes");
        Self::new(StatusCode::RANGE_NOT_SATISFIABLE, "range_not_satisfiable", detail)
    }

    /// A limit of concurrent requests or of memory is reached.
    pub(crate) fn overloaded() -> Self {
        let detail = "too many concurrent requests; try again later";
        let problem = Self::new(StatusCode::SERVICE_UNAVAILABLE, "overloaded", detail);
        Self { retry_after: Some(Duration::from_secs(1)), ..problem }
    }

    pub(crate) fn timed_out() -> Self {
        Self::new(StatusCode::GATEWAY_TIMEOUT, "timeout", "the request took too long")
    }

    /// The record does not exist, was deleted, or belongs to another customer.
    pub(crate) fn not_found() -> Self {
        Self::of(StatusCode::NOT_FOUND)
    }

    pub(crate) fn internal() -> Self {
        Self::of(StatusCode::INTERNAL_SERVER_ERROR)
    }

    /// The problem of a bare status, such as that of an unknown route.
    pub(crate) fn of(status: StatusCode) -> Self {
        let (code, detail) = match status {
            StatusCode::NOT_FOUND => ("not_found", "no such record"),
            StatusCode::METHOD_NOT_ALLOWED => {
                ("method_not_allowed", "use a method in the header Allow")
            }
            StatusCode::NOT_ACCEPTABLE => {
                ("not_acceptable", "Accept-Encoding: no supported encoding")
            }
            StatusCode::SERVICE_UNAVAILABLE => {
                ("unavailable", "a service is unavailable; try again later")
            }
            status if status.is_client_error() => ("malformed", "the request is malformed"),
            _ => ("internal", "internal error; the log has details under the trace id"),
        };
        Self::new(status, code, detail)
    }

    /// Turns a stale version into 412 if the request has stated it in `If-Match`.
    pub(crate) fn of_precondition(mut self, stated: bool) -> Self {
        if stated && self.code == STALE {
            self.status = StatusCode::PRECONDITION_FAILED;
        }
        self
    }

    /// Adds the path of the nested object to the fields in it.
    pub(crate) fn within(mut self, nested: &Nested) -> Self {
        for violation in &mut self.violations {
            violation.field = nested.locate(std::mem::take(&mut violation.field));
        }
        self
    }

    /// Names fields as query parameters: `subjectId` for `SubjectId`.
    pub(crate) fn of_parameters(mut self) -> Self {
        for Violation { field, .. } in &mut self.violations {
            if !field.contains('/') && field.is_ascii() {
                field.get_mut(..1).into_iter().for_each(str::make_ascii_lowercase);
            }
        }
        self
    }

    /// Returns the reason in one text, with the fields that are not valid.
    fn explanation(&self) -> String {
        let fields: Vec<String> = self.violations.iter().map(ToString::to_string).collect();
        if fields.is_empty() { self.detail.clone().into_owned() } else { fields.join("; ") }
    }

    /// Returns the status and the body in the form of the other interface that a path belongs to, and
    /// adds its headers.
    fn in_form_of(&self, path: &str, headers: &mut HeaderMap) -> Option<(StatusCode, Value)> {
        if reportportal::has_path(path) {
            return Some(reportportal::error(self.status, &self.explanation()));
        }
        (path == testrail::PATH).then(|| {
            let answer = testrail::error(self.status, &self.code, &self.explanation());
            testrail::add_headers(answer.0, headers);
            answer
        })
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
        // The rest of the body is not awaited (RFC 9110, section 15.5.9).
        if self.status == StatusCode::REQUEST_TIMEOUT {
            headers.insert(CONNECTION, HeaderValue::from_static("close"));
        }
        response.extensions_mut().insert(self);
        response
    }
}

/// The parts of a request that its problem shows if it fails.
pub(crate) struct FailedRequest {
    uri: Uri,
    is_conditional: bool,
}

impl FailedRequest {
    pub(crate) fn of(request: &Request) -> Self {
        let is_conditional = request.headers().contains_key(IF_MATCH);
        Self { uri: request.uri().clone(), is_conditional }
    }

    /// Gives the response its body if the request has failed, wherever that was. Pages explain
    /// their failures themselves.
    pub(crate) fn explain(self, mut response: Response) -> Response {
        let status = response.status();
        let is_page = response.headers().get(CONTENT_TYPE).is_some_and(|it| it == HTML);
        if !status.is_client_error() && !status.is_server_error() || is_page {
            return response;
        }
        let problem = response.extensions_mut().remove().unwrap_or_else(|| Problem::of(status));
        let problem = problem.of_precondition(self.is_conditional);
        *response.status_mut() = problem.status;
        let headers = response.headers_mut();
        for obsolete in [CONTENT_LENGTH, ETAG] {
            headers.remove(obsolete);
        }
        if let Some((status, body)) = problem.in_form_of(self.uri.path(), headers) {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
            *response.status_mut() = status;
            return response.map(|_| Json(body).into_response().into_body());
        }
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        let document = problem.into_document(self.uri.path().to_owned());
        response.map(|_| Json(document).into_response().into_body())
    }
}
