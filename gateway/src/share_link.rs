//! The secret in the URLs of shared executions.

use http::{HeaderMap, HeaderName, HeaderValue, header::REFERRER_POLICY};

const SHARED: &str = "/shared/";

/// Returns whether a path has the secret of a share link.
pub(crate) fn has_secret(path: &str) -> bool {
    without_secret(path).len() < path.len()
}

/// Returns a path without the secret of a share link.
pub(crate) fn without_secret(path: &str) -> &str {
    path.find(SHARED).map_or(path, |at| &path[..at + SHARED.len()])
}

/// Keeps the URL from other hosts and from search engines, whatever the response is.
pub(crate) fn protect(headers: &mut HeaderMap) {
    const ROBOTS: HeaderName = HeaderName::from_static("x-robots-tag");
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.insert(ROBOTS, HeaderValue::from_static("noindex"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_left_out_of_paths() {
        for (path, expected) in [
            ("/api/shared/s5bYfVxk/failures", "/api/shared/"),
            ("/shared/s5bYfVxk", "/shared/"),
            ("/api/projects/0/executions", "/api/projects/0/executions"),
        ] {
            assert_eq!(without_secret(path), expected);
            assert_eq!(has_secret(path), expected != path);
        }
    }
}
