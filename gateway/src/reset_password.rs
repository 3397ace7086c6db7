//! The page for choosing a password, which links in mails open.

use axum::response::{Html, IntoResponse};
use http::header::{CONTENT_SECURITY_POLICY, REFERRER_POLICY};

/// Allows inline code and requests to this host only, and no frames.
const POLICY: &str = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; \
                      connect-src 'self'; base-uri 'none'; form-action 'none'; \
                      frame-ancestors 'none'";

pub(crate) async fn page() -> impl IntoResponse {
    let headers = [(CONTENT_SECURITY_POLICY, POLICY), (REFERRER_POLICY, "no-referrer")];
    (headers, Html(include_str!("reset_password.html")))
}
