//! Rules for links in results, which users follow later.

use assay_ledger::link::{NO_WEB_LINK, web_problem};

use crate::artifact;

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
