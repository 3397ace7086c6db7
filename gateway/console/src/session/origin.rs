//! The page that has sent a request, as the browser states it.

use http::{
    HeaderMap, Uri,
    header::{HOST, HeaderName, ORIGIN},
};

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Returns whether a page of this host has sent the request. A cookie alone is not enough: pages of
/// neighbouring hosts are of the same site.
pub(super) fn is_own(headers: &HeaderMap, uri: &Uri) -> bool {
    if let Some(site) = headers.get(SEC_FETCH_SITE) {
        return site == "same-origin";
    }
    let origin = headers.get(ORIGIN).and_then(|origin| origin.to_str().ok());
    let origin = origin.and_then(|origin| Some(origin.split_once("://")?.1));
    origin.zip(host(headers, uri)).is_some_and(|(origin, host)| origin.eq_ignore_ascii_case(host))
}

/// Returns whether the browser regards this host as trustworthy: over https, or on this machine.
/// Only then it sends `Sec-Fetch-Site` and accepts secure cookies.
pub(super) fn is_trustworthy(headers: &HeaderMap) -> bool {
    let is_https = |origin: &http::HeaderValue| origin.as_bytes().starts_with(b"https://");
    headers.contains_key(SEC_FETCH_SITE) || headers.get(ORIGIN).is_some_and(is_https)
}

/// Returns the host, with its port, that a request was sent to.
fn host<'a>(headers: &'a HeaderMap, uri: &'a Uri) -> Option<&'a str> {
    let authority = uri.authority().map(http::uri::Authority::as_str);
    authority.or_else(|| headers.get(HOST)?.to_str().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_own_with(lines: &[(&'static str, &'static str)]) -> bool {
        let lines = lines.iter().map(|(name, value)| {
            (HeaderName::from_static(name), http::HeaderValue::from_static(value))
        });
        is_own(&lines.collect(), &Uri::from_static("/logout"))
    }

    #[test]
    fn a_change_needs_a_page_of_this_host() {
        const HOST: (&str, &str) = ("host", "acme.assay.test:8080");
        for (site, origin, expected) in [
            (Some("same-origin"), None, true),
            (Some("same-origin"), Some("http://acme.assay.test:8080"), true),
            (Some("same-site"), Some("http://acme.assay.test:8080"), false),
            (Some("cross-site"), None, false),
            (Some("none"), None, false),
            (None, Some("http://acme.assay.test:8080"), true),
            (None, Some("http://ACME.assay.test:8080"), true),
            (None, Some("http://acme.assay.test"), false),
            (None, Some("http://evil.assay.test:8080"), false),
            (None, Some("http://acme.assay.test:8080.evil.test"), false),
            (None, Some("null"), false),
            (None, None, false),
        ] {
            let site = site.map(|site| ("sec-fetch-site", site));
            let origin = origin.map(|origin| ("origin", origin));
            let lines: Vec<_> = [Some(HOST), site, origin].into_iter().flatten().collect();
            assert_eq!(is_own_with(&lines), expected, "{lines:?}");
        }
        assert!(!is_own_with(&[("origin", "http://acme.assay.test")]));
    }
}
