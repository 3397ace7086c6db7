//! The page that links in mails lead to: where a password is chosen.

use axum::response::{Html, IntoResponse};
use http::header::{CONTENT_SECURITY_POLICY, REFERRER_POLICY};

/// The page is one file, talks to this interface only, and stands in nobody's frame.
const POLICY: &str = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; \
                      connect-src 'self'; base-uri 'none'; form-action 'none'; \
                      frame-ancestors 'none'";

pub(crate) async fn page() -> impl IntoResponse {
    let headers = [(CONTENT_SECURITY_POLICY, POLICY), (REFERRER_POLICY, "no-referrer")];
    (headers, Html(include_str!("reset_password.html")))
}
