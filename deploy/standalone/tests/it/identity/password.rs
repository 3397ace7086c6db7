//! Passwords that were forgotten.

use assay_testkit::Answer;
use futures::future::join_all;
use reqwest::Method;
use serde_json::json;

use crate::{
    people::{attempt, password_of, prepare, reset},
    world::World,
};

const NEW: &str = "an altogether different phrase";
const GRACE: &str = "grace@example.org";

#[tokio::test(flavor = "multi_thread")]
async fn a_link_by_mail_sets_a_new_password_once() {
    let world = World::start().await;
    let admin = world.manage_new("acme").await;
    let grace = world.member(&admin, GRACE, "Login, Read").await;
    let api = world.anonymous();

    // The mail goes to the address of the account, however it is asked for.
    assert_eq!(prepare(&api, "Grace@Example.org", "").await.ok(), json!({}));
    let mail = world.mail_to(GRACE).await;
    assert!(mail.header.contains("multipart/alternative"), "{}", mail.header);
    assert!(mail.link().starts_with("https://assay.test/"), "{}", mail.link());
    assert_eq!(mail.token().len(), 43, "256 bits");

    assert_eq!(reset(&api, mail.token(), NEW).await.ok(), json!({}));
    reset(&api, mail.token(), NEW).await.is_problem(422, "invalid_reset_token");
    attempt(&api, GRACE, &password_of(GRACE)).await.is_problem(401, "unauthenticated");
    attempt(&api, GRACE, NEW).await.ok();
    crate::identity::revocation::dies(&grace.api).await;
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_learns_who_has_an_account_and_strangers_get_no_mail() {
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
        assert_eq!(prepare(&api, email, "").await.ok(), json!({}), "{email:?}");
    }
    // Mails go out in the order in which they were asked for.
    assert_eq!(prepare(&api, crate::world::ADMIN, "").await.ok(), json!({}));
    let mail = world.mail_to(crate::world::ADMIN).await;
    assert!(!mail.header.to_lowercase().contains("cc:"), "{}", mail.header);
    assert!(!world.has_mail(), "somebody else got one");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fourth_link_takes_the_place_of_the_oldest() {
    let world = World::start().await;
    let admin = world.manage_new("acme").await;
    world.member(&admin, GRACE, "Login").await;
    let api = world.anonymous();

    let mut links = Vec::new();
    for _ in 0..4 {
        prepare(&api, GRACE, "").await.ok();
        links.push(world.mail_to(GRACE).await);
    }
    reset(&api, links[0].token(), NEW).await.is_problem(422, "invalid_reset_token");
    reset(&api, links[1].token(), NEW).await.ok();
    for used_up in &links[2..] {
        reset(&api, used_up.token(), NEW).await.is_problem(422, "invalid_reset_token");
    }
    for wrong in ["", "x", "\0", &"x".repeat(10_000)] {
        reset(&api, wrong, NEW).await.is_problem(422, "invalid_reset_token");
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_fifty_uses_of_one_link_one_succeeds() {
    let world = World::start().await;
    let admin = world.manage_new("acme").await;
    world.member(&admin, GRACE, "Login").await;
    let api = world.anonymous();
    prepare(&api, GRACE, "").await.ok();
    let mail = world.mail_to(GRACE).await;

    let phrases: Vec<_> = (0..50).map(|n| format!("a phrase of many words, number {n}")).collect();
    let answers = join_all(phrases.iter().map(|new| reset(&api, mail.token(), new))).await;
    let (won, lost): (Vec<_>, Vec<_>) =
        answers.iter().zip(&phrases).partition(|(answer, _)| answer.status == 200);
    let [(_, phrase)] = won[..] else { panic!("{} have succeeded", won.len()) };
    for (answer, _) in lost {
        answer.is_problem(422, "invalid_reset_token");
    }
    attempt(&api, GRACE, phrase).await.ok();
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_leads_to_hosts_of_ours_only() {
    let world = World::start().await;
    let admin = world.manage_new("acme").await;
    world.customer("foreign").await;
    world.member(&admin, GRACE, "Login").await;
    // One mail at a time would be too many for one account.
    for (n, (host, origin)) in [
        ("https://acme.assay.test", "https://acme.assay.test"),
        ("acme.assay.test", "https://acme.assay.test"),
        ("https://evil.example", "https://assay.test"),
    ]
    .into_iter()
    .enumerate()
    {
        prepare(&world.anonymous(), GRACE, host).await.ok();
        let mail = world.mail_to(GRACE).await;
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
        world.member(&admin, &email, "Login").await;
        prepare(&world.anonymous(), &email, host).await.ok();
        let mail = world.mail_to(&email).await;
        assert!(mail.link().starts_with("https://assay.test/"), "{host}: {}", mail.link());
        assert!(!mail.body.contains("evil"), "{host}: {}", mail.body);
        assert!(!mail.header.contains("eve"), "{host}: {}", mail.header);
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_forged_header_leads_a_link_nowhere_else() {
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
    let mail = world.mail_to(crate::world::ADMIN).await;
    assert!(mail.link().starts_with("https://assay.test/"), "{}", mail.link());
    assert!(!mail.body.contains("evil"), "{}", mail.body);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_password_is_long_and_hard_to_guess() {
    let world = World::start().await;
    let admin = world.manage_new("acme").await;
    world.member(&admin, GRACE, "Login").await;
    let api = world.anonymous();
    prepare(&api, GRACE, "").await.ok();
    let mail = world.mail_to(GRACE).await;

    let long = (0..60).map(|n| format!("step {n}")).collect::<Vec<_>>().join(", ");
    for wrong in ["", "short", "elevenchars", &long[..257], "password1234", "qwertyuiop12", GRACE] {
        let problem = reset(&api, mail.token(), wrong).await.is_problem(422, "invalid");
        assert_eq!(problem["errors"][0]["pointer"], "/NewPassword", "{wrong:?}");
    }
    let body = json!({"Token": mail.token(), "NewPassword": 7});
    let problem = api.put("/api/users/reset", body).await.is_problem(422, "invalid");
    assert_eq!(problem["errors"][0]["pointer"], "/NewPassword");
    // None of them has used up the link.
    reset(&api, mail.token(), &long[..256]).await.ok();
    attempt(&api, GRACE, &long[..256]).await.ok();
    world.stop().await;
}
