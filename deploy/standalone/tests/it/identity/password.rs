//! Password resets.

use assay_testkit::{Answer, Api};
use reqwest::Method;
use serde_json::{Value, json};

use super::revocation::time_until_revoked;
use crate::{
    customer::Customer,
    people::{password_of, reset_password, try_login},
};

const NEW: &str = "an altogether different phrase";

/// Requests a password reset with forged headers that name another host.
async fn request_with_forged_headers(api: &Api, email: &str) -> Value {
    let body = json!({"UserEmail": email, "Host": ""});
    let request = api.request(Method::PUT, "/api/users/reset/prepare").json(&body);
    let forged = [
        ("Host", "evil.example"),
        ("X-Forwarded-Host", "evil.example"),
        ("X-Forwarded-Proto", "http"),
        ("Forwarded", "host=evil.example;proto=http"),
        ("Origin", "https://evil.example"),
        ("Referer", "https://evil.example/"),
    ];
    let request =
        forged.iter().fold(request, |request, (name, value)| request.header(*name, *value));
    Answer::of(request).await.ok()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_in_a_mail_sets_a_new_password_once() {
    let customer = Customer::new().await;
    let grace = customer.create_member("grace", "Login, Read").await;
    let api = customer.anonymous();

    // The mail goes to the stored address of the account.
    let in_capitals = grace.email.to_uppercase();
    assert_eq!(request_with_forged_headers(&api, &in_capitals).await, json!({}));
    let mail = customer.assay.take_mail_to(&grace.email).await;
    assert!(mail.header.contains("multipart/alternative"), "{}", mail.header);
    assert!(mail.link().starts_with("https://assay.test/"), "{}", mail.link());
    assert!(!mail.body.contains("evil"), "{}", mail.body);
    assert_eq!(mail.token().len(), 43, "256 bits");

    let problem = reset_password(&api, mail.token(), "password1234").await;
    let problem = problem.is_problem(422, "invalid");
    assert_eq!(problem["errors"][0]["pointer"], "/NewPassword");
    assert_eq!(reset_password(&api, mail.token(), NEW).await.ok(), json!({}));
    reset_password(&api, mail.token(), NEW).await.is_problem(422, "invalid_reset_token");
    let old = try_login(&api, &grace.email, &password_of(&grace.email)).await;
    old.is_problem(401, "unauthenticated");
    try_login(&api, &grace.email, NEW).await.ok();
    time_until_revoked(&grace.api).await;
}
