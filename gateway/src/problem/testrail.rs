//! Problems in the form of TestRail, below the path of its interface.

use http::{HeaderValue, StatusCode, header::WWW_AUTHENTICATE};
use serde_json::{Value, json};

use super::remedy::remedy;

/// The path of the interface. The query is the path of a request.
pub(crate) const PATH: &str = "/index.php";

/// The code of a request that is not supported.
pub(crate) const UNKNOWN_METHOD: &str = "unknown_method";

/// The pause after a refusal that names none, in seconds: trcli requires the header.
const PAUSE: HeaderValue = HeaderValue::from_static("1");

/// Returns the status and the body of a failed request. TestRail answers 400 to ids of unknown
/// records and to changes that a state does not allow.
pub(super) fn error(status: StatusCode, code: &str, detail: &str) -> (StatusCode, Value) {
    let status = match status {
        StatusCode::NOT_FOUND if code != UNKNOWN_METHOD => StatusCode::BAD_REQUEST,
        StatusCode::CONFLICT | StatusCode::UNPROCESSABLE_ENTITY => StatusCode::BAD_REQUEST,
        status => status,
    };
    (status, json!({ "error": format!("{detail}{}", remedy(status)) }))
}

/// Adds the headers that clients need.
pub(super) fn add_headers(status: StatusCode, headers: &mut http::HeaderMap) {
    if status == StatusCode::UNAUTHORIZED {
        headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Basic realm=\"Assay\""));
    }
    if status == StatusCode::TOO_MANY_REQUESTS {
        headers.entry(http::header::RETRY_AFTER).or_insert(PAUSE);
    }
}
