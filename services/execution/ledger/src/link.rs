//! The rule for links to pages, which users follow later.

use url::Url;

/// Maximum size of a link, in bytes.
const LARGEST: usize = 8192;

/// The problem of a text that does not lead to a page.
pub const NO_WEB_LINK: &str = "must be an http or https URL";

/// Returns the rule that a link to a page violates, if any. An empty text is valid.
pub fn web_problem(link: &str) -> Option<&'static str> {
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
