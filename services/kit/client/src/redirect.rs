//! Redirects, which are not followed: a token or a password belongs to one origin.

use reqwest::{Response, StatusCode, Url, header::LOCATION};

/// Returns the URL that a response redirects to, without its query. `None` if it is not a redirect.
pub fn target(response: &Response) -> Option<String> {
    let status = response.status();
    if !status.is_redirection() || status == StatusCode::NOT_MODIFIED {
        return None;
    }
    let location = response.headers().get(LOCATION).and_then(|location| location.to_str().ok());
    let target = location.and_then(|location| response.url().join(location).ok());
    Some(target.map_or_else(|| "an unknown place".to_owned(), readable))
}

/// Returns a URL without secrets that it may have.
fn readable(mut url: Url) -> String {
    url.set_query(None);
    url.set_fragment(None);
    // This fails for URLs without a host, which have neither.
    let _ = (url.set_username(""), url.set_password(None));
    url.into()
}

/// Returns the part of a URL before the path of the interface.
pub(crate) fn base(target: &str) -> &str {
    target.find("/api/").map_or(target, |end| &target[..end])
}
