//! Links in results, which anybody may have written.

use url::{Url, form_urlencoded::byte_serialize};

/// A link that is safe to show.
#[derive(Clone, Debug, PartialEq)]
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

/// Returns the link to a ticket by its name. `template` is the URL of the tickets of a project, in which `{ticket}` stands
/// for the name, or empty. The sign before a number, as in `#12`, is not part of the name.
pub(crate) fn link_to_ticket(ticket: &str, template: &str) -> Option<Link> {
    let name = ticket.trim().trim_start_matches('#');
    if name.is_empty() || name.contains(char::is_whitespace) {
        return None;
    }
    let name: String = byte_serialize(name.as_bytes()).collect();
    link(&template.replace("{ticket}", &name))
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
    fn tickets_are_links_where_the_project_says_where_they_are() {
        let of =
            |ticket, template| link_to_ticket(ticket, template).map(|link| link.href().to_owned());
        let template = "https://tickets.example/browse/{ticket}?from=assay";
        for (ticket, name) in [("SHOP-7", "SHOP-7"), ("#12", "12"), ("a/../b?c", "a%2F..%2Fb%3Fc")]
        {
            let expected = format!("https://tickets.example/browse/{name}?from=assay");
            assert_eq!(of(ticket, template), Some(expected));
        }
        for (ticket, template) in [
            ("", template),
            ("SHOP-7", ""),
            ("SHOP-7 and SHOP-8", template),
            ("alert(1)", "javascript:{ticket}"),
        ] {
            assert_eq!(of(ticket, template), None, "{ticket}");
        }
    }

    #[test]
    fn artifacts_load_from_the_host_of_the_page() {
        let stored = "https://assay.example/api/artifacts/1/a.png?customer=2&signature=3";
        let expected = "/api/artifacts/1/a.png?customer=2&signature=3".to_owned();
        assert_eq!(link(stored), Some(Link::Artifact(expected)));
    }
}
