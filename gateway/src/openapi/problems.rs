//! How operations can fail, which follows from what they take.

use utoipa::openapi::{
    Components, Content, Ref, RefOr, Response, ResponseBuilder,
    path::{Operation, Parameter, ParameterIn},
};

/// A way to fail: status, name, meaning, and whether an operation of some HTTP method has it.
type Failure = (u16, &'static str, &'static str, fn(&str, &Operation) -> bool);

const FAILURES: [Failure; 13] = [
    (400, "Malformed", "The request cannot be read", has_input),
    (401, "Unauthenticated", "There is no token, or no valid one", proves),
    (403, "Forbidden", "The permission is missing", is_closed),
    (404, "NotFound", "There is no such record for this customer", names_record),
    (409, "Conflict", "The state of the record does not allow it", writes),
    (412, "Outdated", "The record is not as `If-Match` says", is_conditional),
    (413, "TooLarge", "The body is too large", has_body),
    (415, "Unsupported", "The body is of another media type", has_body),
    (422, "Invalid", "Fields or parameters are not right", has_input),
    (429, "Busy", "Too many requests; try again later", always),
    (500, "Failed", "Something went wrong", always),
    (503, "Unavailable", "Something is not available; try again later", always),
    (504, "TimedOut", "The answer took too long", always),
];

fn always(_: &str, _: &Operation) -> bool {
    true
}

fn writes(method: &str, _: &Operation) -> bool {
    method != "GET"
}

fn is_closed(_: &str, operation: &Operation) -> bool {
    operation.security.is_none()
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
    for (_, name, meaning, _) in FAILURES {
        components.responses.insert(name.to_owned(), response(meaning).into());
    }
}

fn response(meaning: &str) -> Response {
    let content = Content::new(Some(Ref::from_schema_name("Problem")));
    ResponseBuilder::new().description(meaning).content("application/problem+json", content).build()
}

/// Tells how an operation can fail.
pub(super) fn tell(method: &str, operation: &mut Operation) {
    for (status, name, _, applies) in FAILURES {
        if applies(method, operation) {
            let response = RefOr::Ref(Ref::from_response_name(name));
            operation.responses.responses.insert(status.to_string(), response);
        }
    }
}
