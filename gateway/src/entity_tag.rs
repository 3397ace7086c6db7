//! Entity tags: `"<DataVersion>.<fingerprint of the body>"`.
//!
//! `If-Match` compares the version, so that a change is rejected only if the record itself has
//! changed. `If-None-Match` compares the whole tag, because a body also shows data of other
//! records, such as the name of a user group or the last result of a test case.

use aws_lc_rs::digest::{SHA256, digest};
use axum::{
    extract::Request,
    response::{IntoResponse, Response},
};
use http::{
    HeaderName, HeaderValue, Method, StatusCode,
    header::{ETAG, IF_NONE_MATCH},
};
use uuid::Uuid;

/// Returns the header for a complete body; none for a record without a version.
pub(crate) fn of_body(version: Option<&str>, body: &[u8]) -> Option<Header> {
    let hash = digest(&SHA256, body);
    let first = hash.as_ref().iter().take(8);
    let fingerprint = first.fold(0_u64, |number, byte| (number << 8) | u64::from(*byte));
    header(version?, &format!("{fingerprint:016x}"))
}

/// Returns the header with a unique tag, for a body that is streamed.
pub(crate) fn unrepeatable(version: Option<&str>) -> Option<Header> {
    header(version?, &Uuid::now_v7().simple().to_string())
}

/// Returns the version in the strong tag of an `If-Match` header. Anything else is returned
/// unchanged and equals no version.
pub(crate) fn version(tag: &str) -> &str {
    let Some(tag) = tag.strip_prefix('"').and_then(|tag| tag.strip_suffix('"')) else { return tag };
    tag.rsplit_once('.').map_or(tag, |(version, _)| version)
}

/// The tags of the responses that a client has cached, if it reads a record again.
pub(crate) struct Cached(Option<HeaderValue>);

impl Cached {
    pub(crate) fn of(request: &Request) -> Self {
        let reads = matches!(*request.method(), Method::GET | Method::HEAD);
        Self(request.headers().get(IF_NONE_MATCH).filter(|_| reads).cloned())
    }

    /// Returns the response, or 304 if the client has it.
    pub(crate) fn unless_current(self, response: Response) -> Response {
        let tags = self.0.as_ref().zip(response.headers().get(ETAG));
        let Some((_, tag)) = tags.filter(|(cached, tag)| is_among(cached, tag)) else {
            return response;
        };
        if response.status() != StatusCode::OK {
            return response;
        }
        (StatusCode::NOT_MODIFIED, [(ETAG, tag.clone())]).into_response()
    }
}

/// Returns whether `tag` is among the tags of an `If-None-Match` header, weak or not.
fn is_among(known: &HeaderValue, tag: &HeaderValue) -> bool {
    let (Ok(known), Ok(tag)) = (known.to_str(), tag.to_str()) else { return false };
    let mut known = known.split(',').map(|tag| tag.trim().trim_start_matches("W/"));
    known.any(|known| known == tag || known == "*")
}

type Header = [(HeaderName, HeaderValue); 1];

fn header(version: &str, rest: &str) -> Option<Header> {
    Some([(ETAG, HeaderValue::try_from(format!("\"{version}.{rest}\"")).ok()?)])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tag(version: &str, body: &[u8]) -> String {
        let [(_, tag)] = of_body(Some(version), body).unwrap();
        tag.to_str().unwrap().to_owned()
    }

    #[test]
    fn a_tag_changes_with_the_body_and_with_the_version() {
        assert_eq!(tag("7", b"{}"), tag("7", b"{}"));
        assert_ne!(tag("7", b"{}"), tag("7", b"[]"));
        assert_ne!(tag("7", b"{}"), tag("8", b"{}"));
        assert_ne!(unrepeatable(Some("7")), unrepeatable(Some("7")));
        assert!(of_body(None, b"{}").is_none());
    }

    #[test]
    fn the_version_precedes_the_fingerprint() {
        assert_eq!(version(&tag("7", b"{}")), "7");
        assert_eq!(version("\"7\""), "7");
        for other in ["W/\"7.ab\"", "\"7.ab\", \"8.cd\"", "", "\""] {
            assert_ne!(version(other), "7", "{other}");
        }
    }
}
