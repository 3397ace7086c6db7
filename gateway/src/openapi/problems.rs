//! How operations can fail, which follows from what they take.

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

/// A way to fail: status, name, meaning, whether an operation of some HTTP method has it, and what
/// is answered then.
type Failure = (u16, &'static str, &'static str, fn(&str, &Operation) -> bool, fn() -> Problem);

const FAILURES: [Failure; 15] = [
    (400, "Malformed", "The request cannot be read", has_input, body::missing),
    (401, "Unauthenticated", "There is no token, or no valid one", proves, || {
        Fault::Unauthenticated.into()
    }),
    (403, "Forbidden", "The permission is missing, or the link is not valid", refuses, || {
        Fault::Forbidden("this needs the permission Write".to_owned()).into()
    }),
    (
        404,
        "NotFound",
        "There is no such record for this customer",
        names_record,
        Problem::not_found,
    ),
    (406, "NotAcceptable", "Nothing that the client accepts can be answered", always, || {
        Problem::of(StatusCode::NOT_ACCEPTABLE)
    }),
    (408, "TooSlow", "The body came too slowly", has_body, Problem::too_slow),
    (409, "Conflict", "The state of the record does not allow it", writes, || {
        Fault::Stale("project").into()
    }),
    (412, "Outdated", "The record is not as `If-Match` says", is_conditional, || {
        Problem::from(Fault::Stale("project")).of_precondition(true)
    }),
    (413, "TooLarge", "The body is too large", has_body, Problem::too_large),
    (415, "Unsupported", "The body is of another media type", has_body, || {
        Problem::unsupported("application/json is expected")
    }),
    (422, "Invalid", "Fields or parameters are not right", has_input, || {
        Problem::invalid("Name", "must not be blank")
    }),
    (429, "Busy", "Too many requests; try again later", always, || {
        Fault::Busy(Duration::from_secs(1)).into()
    }),
    (500, "Failed", "Something went wrong", always, Problem::internal),
    (
        503,
        "Unavailable",
        "Something is not available; try again later",
        always,
        Problem::overloaded,
    ),
    (504, "TimedOut", "The answer took too long", always, Problem::timed_out),
];

fn always(_: &str, _: &Operation) -> bool {
    true
}

/// A GET with the fields of a record as its body is an update.
fn writes(method: &str, operation: &Operation) -> bool {
    method != "GET" || is_conditional(method, operation)
}

fn is_closed(_: &str, operation: &Operation) -> bool {
    operation.security.is_none()
}

/// Files are for everybody who has a link, while it is valid; an account may lack the permission
/// `Login`.
fn refuses(method: &str, operation: &Operation) -> bool {
    is_closed(method, operation)
        || matches!(operation.operation_id.as_deref(), Some("download_artifact" | "login"))
}

/// Logging in needs no token, but a right password.
fn proves(method: &str, operation: &Operation) -> bool {
    is_closed(method, operation) || operation.operation_id.as_deref() == Some("login")
}

fn has_body(_: &str, operation: &Operation) -> bool {
    operation.request_body.is_some()
}

fn has_input(method: &str, operation: &Operation) -> bool {
    has_body(method, operation)
        || has(operation, |p| p.parameter_in == ParameterIn::Query)
        || has(operation, |p| p.parameter_in == ParameterIn::Path && !p.name.ends_with("Id"))
}

/// What becomes a favorite is named in the body.
fn names_record(_: &str, operation: &Operation) -> bool {
    let adds_favorite = || operation.operation_id.as_deref()?.strip_prefix("add_favorite_");
    adds_favorite().is_some()
        || has(operation, |parameter| parameter.parameter_in == ParameterIn::Path)
}

fn is_conditional(_: &str, operation: &Operation) -> bool {
    has(operation, |parameter| parameter.name == "If-Match")
}

fn has(operation: &Operation, what: fn(&Parameter) -> bool) -> bool {
    operation.parameters.iter().flatten().filter_map(known).any(what)
}

fn known(parameter: &RefOr<Parameter>) -> Option<&Parameter> {
    match parameter {
        RefOr::T(parameter) => Some(parameter),
        RefOr::Ref(_) => None,
    }
}

/// Describes all ways to fail.
pub(super) fn define(components: &mut Components) {
    for (_, name, meaning, _, example) in FAILURES {
        components.responses.insert(name.to_owned(), response(meaning, example()).into());
    }
}

fn response(meaning: &str, example: Problem) -> Response {
    let mut content = Content::new(Some(Ref::from_schema_name("Problem")));
    content.example = serde_json::to_value(example.clone().into_example()).ok();
    let answered = example.into_response();
    let told = [
        (RETRY_AFTER, "Retry-After", "How many seconds to wait before the next try"),
        (WWW_AUTHENTICATE, "WWW-Authenticate", "How to prove who asks"),
    ];
    let headers = told.into_iter().filter_map(|(name, shown_as, meaning)| {
        let mut header = header(meaning);
        header.example = Some(answered.headers().get(name)?.to_str().ok()?.into());
        Some((shown_as, header))
    });
    headers
        .fold(ResponseBuilder::new().description(meaning), |response, (name, header)| {
            response.header(name, header)
        })
        .content("application/problem+json", content)
        .build()
}

/// Tells how an operation can fail.
pub(super) fn tell(method: &str, operation: &mut Operation) {
    for (status, name, _, applies, _) in FAILURES {
        if applies(method, operation) {
            let response = RefOr::Ref(Ref::from_response_name(name));
            operation.responses.responses.insert(status.to_string(), response);
        }
    }
}
