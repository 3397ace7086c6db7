//! Logins, and switching between customers.

use assay_testkit::{Answer, Api};
use reqwest::Method;
use serde_json::{Value, json};

use crate::{
    people::{create_group, create_user, password_of, refine_token, try_login, try_login_from},
    world::{ADMIN, PASSWORD, World, id},
};

/// Logs in at a host; returns the subdomain of the chosen customer.
async fn customer_at(api: &Api, headers: &[(&str, &str)], email: &str) -> String {
    let login = json!({"Email": email, "Password": password_of(email)});
    let request = api.request(Method::POST, "/api/token/login").json(&login);
    let request =
        headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
    let token = Answer::of(request).await.ok();
    customer_of(&api.with_token(token["token"].as_str().unwrap())).await
}

async fn customer_of(api: &Api) -> String {
    api.get("/api/management/customers/current").await.ok()["Subdomain"]
        .as_str()
        .unwrap()
        .to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_login_chooses_the_customer_of_the_host_or_the_last_used_one() {
    let world = World::start().await;
    let first = world.act_for_new_customer("first").await;
    let second_customer = world.create_customer("second").await;
    let second = world.act_for(&second_customer).await;
    world.create_customer("foreign").await;
    let grace = world.create_member(&first, "grace@example.org", "Login, Read").await;
    let group = create_group(&second, "Others", "Login, Read").await;
    create_user(&second, &grace.email, id(&group)).await.created();
    world.accept_invitation(&grace.email).await;

    let api = world.anonymous();
    let at = |host: &'static str| {
        let (api, email) = (api.clone(), grace.email.clone());
        async move { customer_at(&api, &[("Host", host)], &email).await }
    };
    assert_eq!(at("second.assay.test").await, "second");
    assert_eq!(at("assay.test").await, "second", "the last used customer");
    assert_eq!(at("first.assay.test:8443").await, "first");
    assert_eq!(at("foreign.assay.test").await, "first");
    for name in ["X-Forwarded-Host", "Forwarded", "X-Host", "X-Original-Host"] {
        let value =
            if name == "Forwarded" { "host=second.assay.test" } else { "second.assay.test" };
        let headers = [("Host", "assay.test"), (name, value)];
        assert_eq!(customer_at(&api, &headers, &grace.email).await, "first", "{name}");
    }
    refine_token(&grace.api, id(&second_customer)).await.ok();
    assert_eq!(at("assay.test").await, "second", "switching customers counts as a use");
    world.stop().await;
}

/// A problem without fields that differ between requests.
fn anonymized(mut problem: Value) -> Value {
    problem.as_object_mut().unwrap().remove("traceId");
    problem
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_email_and_a_wrong_password_get_the_same_answer() {
    let world = World::start().await;
    let admin = world.act_for_new_customer("acme").await;
    let group = create_group(&admin, "Group", "Login, Read").await;
    create_user(&admin, "invited@example.org", id(&group)).await.created();

    let api = world.anonymous();
    let expected =
        try_login(&api, ADMIN, "a wrong password").await.is_problem(401, "unauthenticated");
    let expected = anonymized(expected);
    for (email, password) in [
        ("nobody@example.org", PASSWORD),
        ("not an email", PASSWORD),
        ("", ""),
        (ADMIN, ""),
        (ADMIN, "A long enough passphrase"),
        // An account without a password.
        ("invited@example.org", ""),
        ("' or 1=1 --", "x"),
        ("ada@example.org\0", PASSWORD),
    ] {
        let problem = try_login(&api, email, password).await.is_problem(401, "unauthenticated");
        assert_eq!(anonymized(problem), expected, "{email:?}");
    }
    let space_and_case = format!(" {} ", ADMIN.to_uppercase());
    try_login(&api, &space_and_case, PASSWORD).await.ok();
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn malformed_login_requests_get_specific_errors() {
    let world = World::start().await;
    let api = world.anonymous();
    let post = |media_type: &'static str, body: &'static str| {
        let request = api.request(Method::POST, "/api/token/login").body(body);
        Answer::of(request.header("Content-Type", media_type))
    };
    post("application/json", "{").await.is_problem(400, "malformed");
    post("application/json", "").await.is_problem(400, "malformed");
    post("text/plain", "{}").await.is_problem(415, "unsupported_media_type");
    let problem = post("application/json", r#"{"Email":7,"Password":"x"}"#).await;
    assert_eq!(problem.is_problem(422, "invalid")["errors"][0]["pointer"], "/Email");
    post("application/json", "{}").await.is_problem(401, "unauthenticated");
    api.get("/api/token/login").await.is_problem(405, "method_not_allowed");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_failed_logins_from_an_address_block_the_account_only_for_that_address() {
    let world = World::start_with(|settings| {
        settings.edge.trusted_proxies = "127.0.0.0/8".parse().unwrap();
    })
    .await;
    let api = world.anonymous();
    for _ in 0..10 {
        let guess = try_login_from(&api, "192.0.2.1", ADMIN, "guess").await;
        guess.is_problem(401, "unauthenticated");
    }
    let late = try_login_from(&api, "192.0.2.1", ADMIN, PASSWORD).await;
    late.is_problem(429, "busy");
    let wait: u64 = late.headers["retry-after"].to_str().unwrap().parse().unwrap();
    assert!((1..=60).contains(&wait), "{wait}");
    let unknown = try_login_from(&api, "192.0.2.1", "nobody@example.org", "guess").await;
    unknown.is_problem(401, "unauthenticated");
    try_login_from(&api, "192.0.2.2", ADMIN, PASSWORD).await.ok();
    world.api.get("/api/users/current").await.ok();
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn failed_logins_are_limited_despite_forged_forwarded_headers() {
    let world = World::start().await;
    let api = world.anonymous();
    let mut refused = 0;
    for n in 0..110 {
        let email = format!("user{n}@example.org");
        let guess = try_login_from(&api, &format!("192.0.2.{n}"), &email, "guess").await;
        refused += u32::from(guess.status == 429);
    }
    assert!(refused > 0, "a forged address was trusted");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn members_and_customer_managers_can_switch_customers() {
    let world = World::start().await;
    let (first, second) =
        (world.create_customer("first").await, world.create_customer("second").await);
    let grace =
        world.create_member(&world.act_for(&first).await, "grace@example.org", "Login, Read").await;

    let stranger = refine_token(&grace.api, id(&second)).await.is_problem(403, "forbidden");
    let unknown = refine_token(&grace.api, "01a1b2c3-0000-7000-8000-000000000001").await;
    let unknown = unknown.is_problem(403, "forbidden");
    assert_eq!(
        anonymized(unknown),
        anonymized(stranger),
        "the answer does not reveal whether the customer exists"
    );
    refine_token(&grace.api, id(&first)).await.ok();

    let manager = world.act_for(&second).await;
    assert_eq!(customer_of(&manager).await, "second");
    for wrong in ["01a1b2c3-0000-7000-8000-000000000001", "0", ""] {
        let problem = refine_token(&world.api, wrong).await.is_problem(422, "invalid");
        assert_eq!(problem["errors"][0]["pointer"], "/CustomerId", "{wrong:?}");
    }
    refine_token(&world.anonymous(), id(&first)).await.is_problem(401, "unauthenticated");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_login_needs_the_login_permission() {
    let world = World::start().await;
    let admin = world.act_for_new_customer("acme").await;
    let group = create_group(&admin, "Shut out", "Read").await;
    create_user(&admin, "grace@example.org", id(&group)).await.created();
    let password = world.set_first_password("grace@example.org").await;
    try_login(&world.anonymous(), "grace@example.org", &password)
        .await
        .is_problem(403, "forbidden");
    world.stop().await;
}
