//! Rules for links in results, which users follow later.

use url::Url;

use crate::artifact;

/// Maximum size of a link, in bytes.
const LARGEST: usize = 8192;

const NO_WEB_LINK: &str = "must be an http or https URL";

/// Returns the rule that a link violates, if any. Links must not lead a browser to a script or a
/// file, and must not contain a password. An empty text and the name of an artifact are valid.
pub(super) fn problem(link: &str) -> Option<String> {
    if artifact::rules::is_name(link) {
        return None;
    }
    web_problem(link).map(|problem| match problem {
        NO_WEB_LINK => format!("{NO_WEB_LINK}, or the name of an artifact"),
        _ => problem.to_owned(),
    })
}

/// Returns the rule that a link to a page violates, if any. An empty text is valid.
pub(crate) fn web_problem(link: &str) -> Option<&'static str> {
    if link.is_empty() {
        return None;
    }
    if link.len() > LARGEST {
        return Some("must have at most 8192 bytes");
    }
    let is_web = |url: &Url| {
        let begins = |scheme: &str| {
            link.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme))
        };
        url.has_host() && (begins("http://") || begins("https://"))
    };
    let is_odd = |char: char| char.is_control() || char.is_whitespace();
    let url = Url::parse(link).ok().filter(|_| !link.contains(is_odd)).filter(is_web);
    let Some(url) = url else {
        return Some(NO_WEB_LINK);
    };
    let names_user = !url.username().is_empty() || url.password().is_some();
    names_user.then_some("must not contain a user name or password")
}

#[cfg(test)]
mod tests {
    use super::problem;

    #[test]
    fn only_web_links_and_artifact_names_are_valid() {
        for link in [
            "",
            "https://ci.example/7?a=b&c=%20#log",
            "http://[::1]:8080/x.png",
            "HTTPS://ci.example",
            "https://ci.example/a@b",
            "shot-1.png",
        ] {
            assert_eq!(problem(link), None, "{link}");
        }
        for link in [
            "javascript:alert(1)",
            "data:text/html,<script>",
            "file:///etc/passwd",
            "ftp://ci.example/x",
            "//ci.example/x",
            "https:ci.example",
            "https://",
            " https://ci.example",
            "https://ci.example/\n",
            "java\tscript:alert(1)",
            "https://ada@ci.example/",
            "https://ada:secret@ci.example/",
            "https://:secret@ci.example/",
            &format!("https://ci.example/{}", "x".repeat(9000)),
        ] {
            assert!(problem(link).is_some(), "{link:.80} was accepted");
        }
    }
}
