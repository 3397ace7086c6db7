//! The page where a password is chosen.

use http::StatusCode;

use crate::api::Api;

#[tokio::test]
async fn the_page_of_a_link_talks_to_nobody_else() {
    let page = Api::alone().get("/reset-password").await;
    assert_eq!(page.status, StatusCode::OK);
    assert_eq!(page.header("content-type"), "text/html; charset=utf-8");
    let policy = page.header("content-security-policy");
    assert!(policy.contains("default-src 'none'") && policy.contains("connect-src 'self'"));
    assert_eq!(page.header("referrer-policy"), "no-referrer");
    assert_eq!(page.header("x-content-type-options"), "nosniff");
}
