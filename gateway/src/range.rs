//! Requests for a range of a file (RFC 9110, section 14).

use std::convert::Infallible;

use assay_proto::catalog::FileRange;
use axum::extract::FromRequestParts;
use http::{
    HeaderMap, Method,
    header::{IF_RANGE, RANGE},
    request::Parts,
};

/// The part of a file that a request asks for.
pub(crate) struct Wanted {
    /// The whole file by default.
    pub(crate) range: Option<FileRange>,
    /// Tag that the file must have for the range to apply: its SHA-256, or the id of an artifact.
    pub(crate) if_tag: Option<String>,
    /// Whether the response has no contents.
    pub(crate) head_only: bool,
}

impl<S: Sync> FromRequestParts<S> for Wanted {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        let head_only = parts.method == Method::HEAD;
        // Ranges are not defined for HEAD.
        let range = if head_only { None } else { range(&parts.headers) };
        Ok(Self { range, if_tag: if_range(&parts.headers), head_only })
    }
}

/// Returns the range that a request asks for. One with several ranges, in another unit or malformed is
/// answered with the whole file.
fn range(headers: &HeaderMap) -> Option<FileRange> {
    let (unit, range) = headers.get(RANGE)?.to_str().ok()?.split_once('=')?;
    if !unit.trim().eq_ignore_ascii_case("bytes") {
        return None;
    }
    let (first, last) = range.trim().split_once('-')?;
    if ![first, last].iter().all(|text| text.bytes().all(|byte| byte.is_ascii_digit())) {
        return None;
    }
    let (first, last) = (position(first), position(last));
    let is_range = match (first, last) {
        (Some(first), Some(last)) => first <= last,
        (None, None) => false,
        _ => true,
    };
    is_range.then_some(FileRange { first, last })
}

/// Parses the digits of a position, which may be absent. A position beyond all files stays beyond them.
fn position(digits: &str) -> Option<i64> {
    (!digits.is_empty()).then(|| digits.parse().unwrap_or(i64::MAX))
}

/// Returns the tag that a file must have for the range to apply. No file has a weak tag, or a time as its tag.
fn if_range(headers: &HeaderMap) -> Option<String> {
    let tag = headers.get(IF_RANGE)?.to_str().unwrap_or_default();
    let tag = tag.strip_prefix('"').and_then(|tag| tag.strip_suffix('"'));
    Some(tag.unwrap_or_default().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(value: &'static str) -> Option<(Option<i64>, Option<i64>)> {
        let headers = HeaderMap::from_iter([(RANGE, value.parse().unwrap())]);
        range(&headers).map(|range| (range.first, range.last))
    }

    #[test]
    fn single_ranges_of_bytes_are_read_and_others_ignored() {
        assert_eq!(of("bytes=0-0"), Some((Some(0), Some(0))));
        assert_eq!(of("Bytes=5-"), Some((Some(5), None)));
        assert_eq!(of("bytes=-5"), Some((None, Some(5))));
        assert_eq!(of("bytes=0-99999999999999999999"), Some((Some(0), Some(i64::MAX))));
        for ignored in [
            "bytes=",
            "bytes=-",
            "bytes=5-4",
            "bytes=0-1,3-4",
            "rows=0-1",
            "bytes=a-b",
            "bytes=+1-2",
            "0-1",
        ] {
            assert_eq!(of(ignored), None, "{ignored}");
        }
    }

    #[tokio::test]
    async fn a_request_without_contents_has_no_range() {
        for (method, has_range) in [(Method::GET, true), (Method::HEAD, false)] {
            let request = http::Request::builder().method(method).header(RANGE, "bytes=9-");
            let (mut parts, ()) = request.body(()).unwrap().into_parts();
            let Ok(wanted) = Wanted::from_request_parts(&mut parts, &()).await;
            assert_eq!(wanted.range.is_some(), has_range);
        }
    }

    #[test]
    fn only_strong_tags_are_compared() {
        let of = |value: &'static str| {
            if_range(&HeaderMap::from_iter([(IF_RANGE, value.parse().unwrap())]))
        };
        assert_eq!(of("\"abc\"").as_deref(), Some("abc"));
        assert_eq!(of("W/\"abc\"").as_deref(), Some(""));
        assert_eq!(of("Fri, 27 Nov 2026 10:00:00 GMT").as_deref(), Some(""));
        assert_eq!(if_range(&HeaderMap::new()), None);
    }
}
