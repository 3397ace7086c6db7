//! Failures of operations, which follow from their method, parameters and body.

use std::time::Duration;

use assay_proto::Fault;
use axum::response::IntoResponse;
use http::{
    StatusCode,
    header::{RETRY_AFTER, WWW_AUTHENTICATE},
};
use utoipa::openapi::{
    Components, Content, Ref, RefOr, Response, ResponseBuilder,
    path::{Operation, Parameter, ParameterIn},
};

use super::versions::header;
use crate::{body, problem::Problem};

/// A kind of failure: status, name, description, whether an operation with an HTTP method has it,
/// and an example.
type Failure = (u16, &'static str, &'static str, fn(&str, &Operation) -> bool, fn() -> Problem);

const FAILURES: [Failure; 18] = [
    (400, "Malformed", "The request is malformed", has_input, body::missing),
    (401, "Unauthenticated", "The token is missing or not valid", authenticates, || {
        Fault::Unauthenticated.into()
    }),
    (403, "Forbidden", "The permission is missing, or the link is not valid", authorizes, || {
        Fault::Forbidden("this needs the permission Write".to_owned()).into()
    }),
    (404, "NotFound", "The customer has no such record", names_record, Problem::not_found),
    (406, "NotAcceptable", "No representation is acceptable to the client", always, || {
        Problem::of(StatusCode::NOT_ACCEPTABLE)
    }),
    (408, "TooSlow", "The body arrived too slowly", has_body, Problem::too_slow),
    (409, "Conflict", "The state of the record does not allow the change", needs_state, || {
        Fault::Stale("project").into()
    }),
    (
        412,
        "Outdated",
        "The version of the record is not the one in `If-Match`",
        is_conditional,
        || Problem::from(Fault::Stale("project")).of_precondition(true),
    ),
    (
        412,
        "UnsupportedVersion",
        "The version of the protocol is not supported",
        speaks_tus,
        Problem::unsupported_version,
    ),
    (413, "TooLarge", "The body is too large", has_size, Problem::too_large),
    (415, "Unsupported", "The media type of the body is not supported", has_body, || {
        Problem::unsupported("Content-Type: must be application/json")
    }),
    (416, "Unsatisfiable", "The file has no byte of the range", has_range, || {
        Problem::unsatisfiable(1024)
    }),
    (422, "Invalid", "Fields or parameters are not valid", has_input, || {
        Problem::invalid("Name", "must not be blank")
    }),
    (460, "Mismatch", "The body has another checksum", has_checksum, || {
        let reason = "Upload-Checksum: the body has another checksum".to_owned();
        Fault::Refused { code: "checksum_mismatch", reason }.into()
    }),
    (429, "Busy", "Too many requests; try again later", always, || {
        Fault::Busy(Duration::from_secs(1)).into()
    }),
    (500, "Failed", "Internal error", always, Problem::internal),
    (
        503,
        "Unavailable",
        "A service is unavailable or overloaded; try again later",
        always,
        Problem::overloaded,
    ),
    (504, "TimedOut", "The response took too long", always, Problem::timed_out),
];

fn always(_: &str, _: &Operation) -> bool {
    true
}

/// Whether the operation writes; a GET with the fields of a record as its body is an update.
fn writes(method: &str, operation: &Operation) -> bool {
    method != "GET" || is_conditional(method, operation)
}

/// Whether the operation needs a state of the record: it writes, or it needs a lease that is held.
fn needs_state(method: &str, operation: &Operation) -> bool {
    writes(method, operation) || operation.operation_id.as_deref() == Some("download_leased_file")
}

fn needs_token(_: &str, operation: &Operation) -> bool {
    operation.security.is_none()
}

/// Whether the operation checks a permission. Downloads check the signature of the link, logging in
/// the permission `Login` of the account.
fn authorizes(method: &str, operation: &Operation) -> bool {
    needs_token(method, operation)
        || matches!(operation.operation_id.as_deref(), Some("download_artifact" | "login"))
}

/// Whether the operation checks a token or, when logging in, a password.
fn authenticates(method: &str, operation: &Operation) -> bool {
    needs_token(method, operation) || operation.operation_id.as_deref() == Some("login")
}

fn has_body(_: &str, operation: &Operation) -> bool {
    operation.request_body.is_some()
}

/// Whether the operation has a body, or announces the size of a file.
fn has_size(method: &str, operation: &Operation) -> bool {
    has_body(method, operation) || has(operation, |parameter| parameter.name == "Upload-Length")
}

fn has_checksum(_: &str, operation: &Operation) -> bool {
    has(operation, |parameter| parameter.name == "Upload-Checksum")
}

/// Whether the operation is one of the protocol tus.
fn speaks_tus(_: &str, operation: &Operation) -> bool {
    has(operation, |parameter| parameter.name == "Tus-Resumable")
}

fn has_input(method: &str, operation: &Operation) -> bool {
    has_size(method, operation)
        || has(operation, |p| p.parameter_in == ParameterIn::Query)
        || has(operation, |p| p.parameter_in == ParameterIn::Path && !p.name.ends_with("Id"))
}

/// Whether the path, or the body of a new favorite, names a record.
fn names_record(_: &str, operation: &Operation) -> bool {
    let adds_favorite = || operation.operation_id.as_deref()?.strip_prefix("add_favorite_");
    adds_favorite().is_some()
        || has(operation, |parameter| parameter.parameter_in == ParameterIn::Path)
}

fn has_range(_: &str, operation: &Operation) -> bool {
    has(operation, |parameter| parameter.name == "Range")
}

fn is_conditional(_: &str, operation: &Operation) -> bool {
    has(operation, |parameter| parameter.name == "If-Match")
}

fn has(operation: &Operation, matches: fn(&Parameter) -> bool) -> bool {
    operation.parameters.iter().flatten().filter_map(inline).any(matches)
}

fn inline(parameter: &RefOr<Parameter>) -> Option<&Parameter> {
    match parameter {
        RefOr::T(parameter) => Some(parameter),
        RefOr::Ref(_) => None,
    }
}

/// Defines the responses of all kinds of failures.
pub(super) fn define(components: &mut Components) {
    for (_, name, description, _, example) in FAILURES {
        components.responses.insert(name.to_owned(), response(description, example()).into());
    }
}

fn response(description: &str, example: Problem) -> Response {
    let mut content = Content::new(Some(Ref::from_schema_name("Problem")));
    content.example = serde_json::to_value(example.clone().into_example()).ok();
    let response = example.into_response();
    let described = [
        (RETRY_AFTER, "Retry-After", "Seconds to wait before the next attempt"),
        (WWW_AUTHENTICATE, "WWW-Authenticate", "The authentication scheme"),
    ];
    let headers = described.into_iter().filter_map(|(name, spelling, description)| {
        let mut header = header(description);
        header.example = Some(response.headers().get(name)?.to_str().ok()?.into());
        Some((spelling, header))
    });
    headers
        .fold(ResponseBuilder::new().description(description), |response, (name, header)| {
            response.header(name, header)
        })
        .content("application/problem+json", content)
        .build()
}

/// Adds the failures of an operation.
pub(super) fn describe(method: &str, operation: &mut Operation) {
    for (status, name, _, applies, _) in FAILURES {
        if applies(method, operation) {
            let response = RefOr::Ref(Ref::from_response_name(name));
            operation.responses.responses.insert(status.to_string(), response);
        }
    }
}
