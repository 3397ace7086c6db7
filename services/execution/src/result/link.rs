//! Rules for links in results, which users follow later.

use url::Url;

use crate::artifact;

/// Maximum size of a link, in bytes.
const LARGEST: usize = 8 << 10;

/// Returns the rule that a link violates, if any. Links must not lead a browser to a script or a
/// file, and must not contain a password. An empty text and the name of an artifact are valid.
pub(super) fn problem(link: &str) -> Option<String> {
    if link.is_empty() || artifact::rules::is_name(link) {
        return None;
    }
    if link.len() > LARGEST {
        return Some(format!("must have at most {LARGEST} bytes"));
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
        return Some("must be an http or https URL, or the name of an artifact".to_owned());
    };
    let names_user = !url.username().is_empty() || url.password().is_some();
    names_user.then(|| "must not contain a user name or password".to_owned())
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
