//! Failed requests, as pages that say what to do.

use axum::response::{IntoResponse, Response};
use http::StatusCode;
use maud::html;
use serde::Deserialize;

use crate::{layout, text::plain};

/// The reason why a page cannot be shown.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The user is not logged in.
    Unauthenticated,
    /// The interface has refused a request.
    Refused(Problem),
}

/// A problem as the interface states it.
#[derive(Debug)]
pub(crate) struct Problem {
    pub(crate) status: StatusCode,
    pub(crate) detail: String,
    /// Whether a record has changed since the version that was sent.
    pub(crate) is_stale: bool,
    /// The id under which logs and traces have details.
    pub(crate) trace_id: Option<String>,
}

/// The code of a change that was based on an outdated version.
const STALE: &str = "stale_data_version";

/// The body of a failed request to the interface.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Document {
    code: String,
    detail: String,
    trace_id: Option<String>,
    errors: Vec<FieldProblem>,
}

#[derive(Deserialize)]
struct FieldProblem {
    pointer: String,
    detail: String,
}

impl Problem {
    /// Reads the body of a failed request.
    pub(crate) fn read(status: StatusCode, body: &[u8]) -> Self {
        let Document { code, mut detail, trace_id, errors } =
            serde_json::from_slice(body).unwrap_or_default();
        for FieldProblem { pointer, detail: rule } in errors {
            let stated = format!("{}: {rule}", pointer.trim_start_matches('/'));
            if !detail.contains(&stated) {
                detail = format!("{detail}; {stated}");
            }
        }
        Self { status, detail, is_stale: code == STALE, trace_id }
    }
}

impl Failure {
    fn of(status: StatusCode) -> Self {
        Self::Refused(Problem { status, detail: String::new(), is_stale: false, trace_id: None })
    }

    pub(crate) fn not_found() -> Self {
        Self::of(StatusCode::NOT_FOUND)
    }

    pub(crate) fn internal() -> Self {
        Self::of(StatusCode::INTERNAL_SERVER_ERROR)
    }

    /// Returns what is wrong with the input of the user, if that is the reason.
    pub(crate) fn of_input(self) -> Result<String, Self> {
        match self {
            Self::Refused(Problem {
                status: StatusCode::BAD_REQUEST | StatusCode::UNPROCESSABLE_ENTITY,
                detail,
                ..
            }) => Ok(detail),
            failure => Err(failure),
        }
    }

    /// Returns how a record has changed meanwhile, if that is the reason.
    pub(crate) fn of_conflict(self) -> Result<String, Self> {
        match self {
            Self::Refused(Problem { status: StatusCode::CONFLICT, detail, .. }) => Ok(detail),
            failure => Err(failure),
        }
    }

    /// Returns whether the reason is that a record has changed since the version that was sent.
    pub(crate) fn is_stale(&self) -> bool {
        matches!(self, Self::Refused(Problem { is_stale: true, .. }))
    }

    /// Returns whether a record does not exist.
    pub(crate) fn is_not_found(&self) -> bool {
        matches!(self, Self::Refused(Problem { status: StatusCode::NOT_FOUND, .. }))
    }
}

/// Returns the page for a form that a page of another host has sent, which has nothing to do with permissions.
pub(crate) fn foreign() -> Response {
    let body = html! {
        p {
            "The request was not sent by a page of this host. Go back, reload the page and try again. If it fails \
             again, a proxy in front of Assay may change the header Host or Origin: ask the operator."
        }
        p { a.button href="/" { "All projects" } }
    };
    layout::bare(StatusCode::FORBIDDEN, "Not allowed", &body)
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        match self {
            Self::Unauthenticated => StatusCode::UNAUTHORIZED.into_response(),
            Self::Refused(problem) => problem.into_response(),
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let Self { status, detail, trace_id, .. } = self;
        let (title, remedy) = advice(status);
        let stated = !detail.is_empty() && status != StatusCode::NOT_FOUND;
        let body = html! {
            p { (remedy) }
            @if stated { p.hint { (plain(&detail)) } }
            @if let Some(id) = trace_id { p.hint { "Trace " code { (plain(&id)) } } }
            p { a.button href="/" { "All projects" } }
        };
        layout::bare(status, title, &body)
    }
}

/// Returns the title of a failed request, and what its user can do.
fn advice(status: StatusCode) -> (&'static str, &'static str) {
    match status {
        StatusCode::NOT_FOUND => (
            "Page not found",
            "It may have been deleted or moved, or belong to a customer that you are not logged in \
             to. Check the address, or start from the list of projects.",
        ),
        StatusCode::FORBIDDEN => (
            "Not allowed",
            "Your permissions do not include this. An administrator can add you to a group that \
             has them.",
        ),
        StatusCode::TOO_MANY_REQUESTS => {
            ("Too many requests", "Wait a minute, then reload the page.")
        }
        StatusCode::SERVICE_UNAVAILABLE | StatusCode::GATEWAY_TIMEOUT => (
            "Temporarily unavailable",
            "A part of Assay does not respond. Reload the page in a few seconds.",
        ),
        StatusCode::UNPROCESSABLE_ENTITY => {
            ("The request is not valid", "Go back and correct what the message below names.")
        }
        status if status.is_client_error() => {
            ("The request is not valid", "Check the address and the filters in it.")
        }
        _ => (
            "Something went wrong",
            "Reload the page. If it fails again, report it to the operator: with the time, and with the \
             trace id if there is one below.",
        ),
    }
}
