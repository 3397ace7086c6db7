//! The page for setting a password.

use http::StatusCode;

use crate::api::Api;

#[tokio::test]
async fn the_page_connects_only_to_the_gateway() {
    let page = Api::without_services().get("/reset-password").await;
    assert_eq!(page.status, StatusCode::OK);
    assert_eq!(page.header("content-type"), "text/html; charset=utf-8");
    let policy = page.header("content-security-policy");
    assert!(policy.contains("default-src 'none'") && policy.contains("connect-src 'self'"));
    assert_eq!(page.header("referrer-policy"), "no-referrer");
    assert_eq!(page.header("x-content-type-options"), "nosniff");
}
