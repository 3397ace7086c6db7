//! Links in results, which anybody may have written.

use url::Url;

/// A link that is safe to show.
#[derive(Debug, PartialEq)]
pub(crate) enum Link {
    /// A file that Assay stores, by path and query, so that it loads from the host of the page.
    Artifact(String),
    /// A page elsewhere.
    Elsewhere(String),
}

/// Returns the link, or `None` unless its scheme is http or https.
pub(crate) fn link(text: &str) -> Option<Link> {
    let url = Url::parse(text).ok()?;
    if !matches!(url.scheme(), "http" | "https") {
        return None;
    }
    match (url.path().starts_with("/api/artifacts/"), url.query()) {
        (true, Some(query)) => Some(Link::Artifact(format!("{}?{query}", url.path()))),
        _ => Some(Link::Elsewhere(url.into())),
    }
}

impl Link {
    /// Returns the last part of the path, as a name to show.
    pub(crate) fn file_name(&self) -> &str {
        let (Self::Artifact(url) | Self::Elsewhere(url)) = self;
        let path = url.split(['?', '#']).next().unwrap_or_default().trim_end_matches('/');
        path.rsplit('/').next().unwrap_or_default()
    }

    pub(crate) fn href(&self) -> &str {
        let (Self::Artifact(url) | Self::Elsewhere(url)) = self;
        url
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_web_pages_are_links() {
        for text in ["javascript:alert(1)", "data:text/html,x", "file:///etc/passwd", "a.png", ""] {
            assert_eq!(link(text), None, "{text}");
        }
        let page = link("https://ci.example.com/runs/1205/trace.zip#x").unwrap();
        assert_eq!(page.file_name(), "trace.zip");
        assert_eq!(page.href(), "https://ci.example.com/runs/1205/trace.zip#x");
    }

    #[test]
    fn artifacts_load_from_the_host_of_the_page() {
        let stored = "https://assay.example/api/artifacts/1/a.png?customer=2&signature=3";
        let expected = "/api/artifacts/1/a.png?customer=2&signature=3".to_owned();
        assert_eq!(link(stored), Some(Link::Artifact(expected)));
    }
}
