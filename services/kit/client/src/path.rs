//! Paths of requests.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use url::Url;

use crate::ClientError;

/// The characters that a segment of a path or a value of a query does not have.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// Returns a text as a segment of a path or a value of a query.
pub fn segment(text: &str) -> String {
    utf8_percent_encode(text, RESERVED).to_string()
}

/// Returns the URL of a path, which may have a query. Fails if a part of it is not taken literally.
pub(crate) fn url(base: &Url, path: &str) -> Result<Url, ClientError> {
    let refused = || ClientError::Path(path.to_owned());
    let (segments, _) = path.split_once('?').unwrap_or((path, ""));
    let is_plain =
        path.bytes().all(|byte| byte.is_ascii_graphic() && !b"\\#\"<>^`{|}".contains(&byte));
    let is_api = segments == "/api" || segments.starts_with("/api/");
    if !is_plain || !is_api || !segments[1..].split('/').all(is_literal) {
        return Err(refused());
    }
    let base = base.as_str().split(['?', '#']).next().unwrap_or_default();
    let base = base.trim_end_matches('/').trim_end_matches("/api");
    Url::parse(&format!("{base}{path}")).map_err(|_| refused())
}

/// Returns whether no server and no proxy takes a segment for another one, or for several.
fn is_literal(segment: &str) -> bool {
    let decoded = segment.to_ascii_lowercase().replace("%2e", ".");
    let is_split = ["%2f", "%5c", "%00"].iter().any(|encoded| decoded.contains(encoded));
    !matches!(decoded.as_str(), "" | "." | "..") && !is_split
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(base: &str, path: &str) -> Option<String> {
        url(&base.parse().unwrap(), path).ok().map(String::from)
    }

    #[test]
    fn paths_are_below_the_url_of_the_installation() {
        for (base, expected) in [
            ("http://a", "http://a/api/x?y=1"),
            ("http://a/", "http://a/api/x?y=1"),
            ("https://a:8443/assay/api/", "https://a:8443/assay/api/x?y=1"),
            ("https://a/?token=1#x", "https://a/api/x?y=1"),
        ] {
            assert_eq!(of(base, "/api/x?y=1").as_deref(), Some(expected));
        }
    }

    #[test]
    fn paths_that_are_not_taken_literally_are_refused() {
        for path in [
            "/api/a/../b",
            "/api/a/%2E%2e/b",
            "/api/./b",
            "/api//b",
            "/api/a\\b",
            "/api/a b",
            "/api/a\n",
            "/api/a#b",
            "/api/a%2fb",
            "/api/ü",
            "/apis",
            "@evil.example/api/a",
            "",
            "https://evil.example/api/a",
        ] {
            assert_eq!(of("http://a", path), None, "{path}");
        }
    }

    #[test]
    fn a_segment_has_no_reserved_characters() {
        assert_eq!(segment("a-b_1.txt~"), "a-b_1.txt~");
        assert_eq!(segment("../a b?c=ü"), "..%2Fa%20b%3Fc%3D%C3%BC");
    }
}
