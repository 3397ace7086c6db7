//! The token in the headers of a request.

use http::{HeaderMap, header::AUTHORIZATION};

/// Reads the token from `Authentication`, the header of this interface, or the standard
/// `Authorization`.
pub(crate) fn token(headers: &HeaderMap) -> Option<&str> {
    let own = headers.get("authentication");
    let value = own.or_else(|| headers.get(AUTHORIZATION))?.to_str().ok()?.trim();
    let bare = own.map(|_| value);
    match value.split_once(' ') {
        Some((scheme, token)) if scheme.eq_ignore_ascii_case("bearer") => Some(token.trim()),
        Some(_) => None,
        None => bare,
    }
}
