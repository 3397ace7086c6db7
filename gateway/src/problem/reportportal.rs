//! Problems in the form of ReportPortal, below the paths of its interface.

use http::StatusCode;
use serde_json::{Value, json};

use super::remedy::remedy;

/// The path with the version, which agents read first.
pub(crate) const INFO: &str = "/api/info";

/// The versions of the interface, which agents use alike.
pub(crate) const VERSIONS: [&str; 2] = ["/api/v1", "/api/v2"];

/// Codes of errors: of a request, an unknown record, access, a state and the server.
const INCORRECT_REQUEST: u32 = 4001;
const NOT_FOUND: u32 = 4042;
const ACCESS_DENIED: u32 = 4003;
const NOT_ALLOWED: u32 = 40023;
const UNCLASSIFIED: u32 = 5000;

/// Returns whether a path belongs to the interface.
pub(super) fn has_path(path: &str) -> bool {
    let versioned =
        |version: &&str| path.strip_prefix(*version).is_some_and(|rest| rest.starts_with('/'));
    path == INFO || VERSIONS.iter().any(versioned)
}

/// Returns the status and the body of a failed request.
pub(super) fn error(status: StatusCode, detail: &str) -> (StatusCode, Value) {
    let (status, code) = match status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => (status, ACCESS_DENIED),
        StatusCode::NOT_FOUND => (status, NOT_FOUND),
        StatusCode::CONFLICT => (StatusCode::NOT_ACCEPTABLE, NOT_ALLOWED),
        StatusCode::UNPROCESSABLE_ENTITY => (StatusCode::BAD_REQUEST, INCORRECT_REQUEST),
        _ if status.is_client_error() => (status, INCORRECT_REQUEST),
        _ => (status, UNCLASSIFIED),
    };
    (status, json!({ "errorCode": code, "message": format!("{detail}{}", remedy(status)) }))
}
