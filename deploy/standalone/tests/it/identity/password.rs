//! Password resets.

use assay_testkit::Answer;
use futures::future::join_all;
use reqwest::Method;
use serde_json::json;

use crate::{
    people::{password_of, request_password_reset, reset_password, try_login},
    world::World,
};

const NEW: &str = "an altogether different phrase";
const GRACE: &str = "grace@example.org";

#[tokio::test(flavor = "multi_thread")]
async fn a_link_in_a_mail_sets_a_new_password_once() {
    let world = World::start().await;
    let admin = world.act_for_new_customer("acme").await;
    let grace = world.create_member(&admin, GRACE, "Login, Read").await;
    let api = world.anonymous();

    // The mail goes to the stored address of the account.
    assert_eq!(request_password_reset(&api, "Grace@Example.org", "").await.ok(), json!({}));
    let mail = world.take_mail_to(GRACE).await;
    assert!(mail.header.contains("multipart/alternative"), "{}", mail.header);
    assert!(mail.link().starts_with("https://assay.test/"), "{}", mail.link());
    assert_eq!(mail.token().len(), 43, "256 bits");

    assert_eq!(reset_password(&api, mail.token(), NEW).await.ok(), json!({}));
    reset_password(&api, mail.token(), NEW).await.is_problem(422, "invalid_reset_token");
    try_login(&api, GRACE, &password_of(GRACE)).await.is_problem(401, "unauthenticated");
    try_login(&api, GRACE, NEW).await.ok();
    crate::identity::revocation::time_until_revoked(&grace.api).await;
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reset_does_not_reveal_whether_an_account_exists_and_sends_no_mail_to_strangers() {
    let world = World::start().await;
    let api = world.anonymous();
    for email in [
        "nobody@example.org",
        "no email",
        "",
        "ada@example.org, eve@example.org",
        "ada@example.org\r\nBcc: eve@example.org",
        "ada@example.org\nTo: eve@example.org",
        "<ada@example.org>",
        "ada@example.org;eve@example.org",
        "\"eve@example.org\" ada@example.org",
        "ada@example.org%0d%0aBcc:eve@example.org",
    ] {
        assert_eq!(request_password_reset(&api, email, "").await.ok(), json!({}), "{email:?}");
    }
    // Mails are sent in the order of the requests.
    assert_eq!(request_password_reset(&api, crate::world::ADMIN, "").await.ok(), json!({}));
    let mail = world.take_mail_to(crate::world::ADMIN).await;
    assert!(!mail.header.to_lowercase().contains("cc:"), "{}", mail.header);
    assert!(!world.has_mail(), "another address got a mail");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fourth_link_invalidates_the_oldest() {
    let world = World::start().await;
    let admin = world.act_for_new_customer("acme").await;
    world.create_member(&admin, GRACE, "Login").await;
    let api = world.anonymous();

    let mut links = Vec::new();
    for _ in 0..4 {
        request_password_reset(&api, GRACE, "").await.ok();
        links.push(world.take_mail_to(GRACE).await);
    }
    reset_password(&api, links[0].token(), NEW).await.is_problem(422, "invalid_reset_token");
    reset_password(&api, links[1].token(), NEW).await.ok();
    for used_up in &links[2..] {
        reset_password(&api, used_up.token(), NEW).await.is_problem(422, "invalid_reset_token");
    }
    for wrong in ["", "x", "\0", &"x".repeat(10_000)] {
        reset_password(&api, wrong, NEW).await.is_problem(422, "invalid_reset_token");
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_of_fifty_concurrent_uses_of_a_link_succeeds() {
    let world = World::start().await;
    let admin = world.act_for_new_customer("acme").await;
    world.create_member(&admin, GRACE, "Login").await;
    let api = world.anonymous();
    request_password_reset(&api, GRACE, "").await.ok();
    let mail = world.take_mail_to(GRACE).await;

    let phrases: Vec<_> = (0..50).map(|n| format!("a phrase of many words, number {n}")).collect();
    let answers = join_all(phrases.iter().map(|new| reset_password(&api, mail.token(), new))).await;
    let (won, lost): (Vec<_>, Vec<_>) =
        answers.iter().zip(&phrases).partition(|(answer, _)| answer.status == 200);
    let [(_, phrase)] = won[..] else { panic!("{} uses succeeded", won.len()) };
    for (answer, _) in lost {
        answer.is_problem(422, "invalid_reset_token");
    }
    try_login(&api, GRACE, phrase).await.ok();
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_points_only_to_known_hosts() {
    let world = World::start().await;
    let admin = world.act_for_new_customer("acme").await;
    world.create_customer("foreign").await;
    world.create_member(&admin, GRACE, "Login").await;
    // One account may not request so many mails.
    for (n, (host, origin)) in [
        ("https://acme.assay.test", "https://acme.assay.test"),
        ("acme.assay.test", "https://acme.assay.test"),
        ("https://evil.example", "https://assay.test"),
    ]
    .into_iter()
    .enumerate()
    {
        request_password_reset(&world.anonymous(), GRACE, host).await.ok();
        let mail = world.take_mail_to(GRACE).await;
        assert!(mail.link().starts_with(&format!("{origin}/")), "{n}: {host}: {}", mail.link());
    }
    let forged = [
        "https://foreign.assay.test",
        "https://acme.assay.test.evil.example",
        "https://evil.example/?https://acme.assay.test",
        "https://acme.assay.test@evil.example",
        "https://acme.assay.test:444",
        "javascript:alert(1)//acme.assay.test",
        "acme.assay.test\r\nBcc: eve@example.org",
        "//evil.example",
        "https://",
    ];
    for (n, host) in forged.into_iter().enumerate() {
        let email = format!("user{n}@example.org");
        world.create_member(&admin, &email, "Login").await;
        request_password_reset(&world.anonymous(), &email, host).await.ok();
        let mail = world.take_mail_to(&email).await;
        assert!(mail.link().starts_with("https://assay.test/"), "{host}: {}", mail.link());
        assert!(!mail.body.contains("evil"), "{host}: {}", mail.body);
        assert!(!mail.header.contains("eve"), "{host}: {}", mail.header);
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn forged_headers_do_not_change_the_host_of_a_link() {
    let world = World::start().await;
    let forged = [
        ("Host", "evil.example"),
        ("X-Forwarded-Host", "evil.example"),
        ("X-Forwarded-Proto", "http"),
        ("Forwarded", "host=evil.example;proto=http"),
        ("Origin", "https://evil.example"),
        ("Referer", "https://evil.example/"),
    ];
    let body = json!({"UserEmail": crate::world::ADMIN, "Host": ""});
    let request = world.anonymous().request(Method::PUT, "/api/users/reset/prepare").json(&body);
    let request =
        forged.iter().fold(request, |request, (name, value)| request.header(*name, *value));
    Answer::of(request).await.ok();
    let mail = world.take_mail_to(crate::world::ADMIN).await;
    assert!(mail.link().starts_with("https://assay.test/"), "{}", mail.link());
    assert!(!mail.body.contains("evil"), "{}", mail.body);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn weak_passwords_are_rejected() {
    let world = World::start().await;
    let admin = world.act_for_new_customer("acme").await;
    world.create_member(&admin, GRACE, "Login").await;
    let api = world.anonymous();
    request_password_reset(&api, GRACE, "").await.ok();
    let mail = world.take_mail_to(GRACE).await;

    let long = (0..60).map(|n| format!("step {n}")).collect::<Vec<_>>().join(", ");
    for wrong in ["", "short", "elevenchars", &long[..257], "password1234", "qwertyuiop12", GRACE] {
        let problem = reset_password(&api, mail.token(), wrong).await.is_problem(422, "invalid");
        assert_eq!(problem["errors"][0]["pointer"], "/NewPassword", "{wrong:?}");
    }
    let body = json!({"Token": mail.token(), "NewPassword": 7});
    let problem = api.put("/api/users/reset", body).await.is_problem(422, "invalid");
    assert_eq!(problem["errors"][0]["pointer"], "/NewPassword");
    // The rejected passwords have not used up the link.
    reset_password(&api, mail.token(), &long[..256]).await.ok();
    try_login(&api, GRACE, &long[..256]).await.ok();
    world.stop().await;
}
