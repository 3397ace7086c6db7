//! Logins, and switching between customers.

use assay_testkit::{Answer, Api};
use reqwest::Method;
use serde_json::json;

use super::audit::entries;
use crate::{
    customer::{Customer, unique},
    installation::Installation,
    people::{create_group, create_user, password_of, refine_token, try_login_from},
    world::{ADMIN, PASSWORD, World, id},
};

/// Logs in at a host; returns the subdomain of the chosen customer.
async fn customer_at(api: &Api, headers: Vec<(&str, &str)>, email: &str) -> String {
    let login = json!({"Email": email, "Password": password_of(email)});
    let request = api.request(Method::POST, "/api/token/login").json(&login);
    let request =
        headers.into_iter().fold(request, |request, (name, value)| request.header(name, value));
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
    let Customer { api: first, assay, .. } = Customer::new().await;
    let second_customer = assay.create_customer(&unique("second")).await;
    let second = assay.act_for(&second_customer).await;
    let email = format!("{}@example.org", unique("grace"));
    let grace = assay.create_member(&first, &email, "Login, Read").await;
    let group = create_group(&second, "Others", "Login, Read").await;
    create_user(&second, &email, id(&group)).await.created();
    assay.accept_invitation(&email).await;

    let (first_name, second_name) = (customer_of(&first).await, customer_of(&second).await);
    let (first_host, second_host) =
        (format!("{first_name}.assay.test:8443"), format!("{second_name}.assay.test"));
    let api = assay.anonymous();
    let at = |host| customer_at(&api, vec![("Host", host)], &email);
    assert_eq!(at(&second_host).await, second_name);
    assert_eq!(at("assay.test").await, second_name, "the last used customer");
    assert_eq!(at(&first_host).await, first_name);
    let forwarded = format!("host={second_host}");
    let forged =
        ["X-Forwarded-Host", "X-Host", "X-Original-Host"].map(|name| (name, &*second_host));
    let headers = [("Host", "assay.test"), ("Forwarded", &forwarded)].into_iter().chain(forged);
    assert_eq!(customer_at(&api, headers.collect(), &email).await, first_name);
    refine_token(&grace.api, id(&second_customer)).await.ok();
    assert_eq!(at("assay.test").await, second_name, "switching customers counts as a use");
}

#[tokio::test(flavor = "multi_thread")]
async fn malformed_login_requests_get_specific_errors() {
    let api = Installation::shared().await.anonymous();
    let post = |media_type: &'static str, body: &'static str| {
        let request = api.request(Method::POST, "/api/token/login").body(body);
        Answer::of(request.header("Content-Type", media_type))
    };
    post("application/json", "{").await.is_problem(400, "malformed");
    post("application/json", "").await.is_problem(400, "malformed");
    post("text/plain", "{}").await.is_problem(415, "unsupported_media_type");
    let problem = post("application/json", r#"{"Email":7,"Password":"x"}"#).await;
    assert_eq!(problem.is_problem(422, "invalid")["errors"][0]["pointer"], "/Email");
    let problem = post("application/json", "{}").await.is_problem(422, "invalid");
    assert_eq!(problem["errors"].as_array().map(Vec::len), Some(2), "{problem}");
    api.get("/api/token/login").await.is_problem(405, "method_not_allowed");
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

    let guess = try_login_from(&api, "2001:db8::7", ADMIN, "guess").await;
    guess.is_problem(401, "unauthenticated");
    for (action, address) in [("LoginRefused", "2001:db8::7"), ("LoggedIn", "192.0.2.2")] {
        let last = &entries(&world.api, &format!("action={action}")).await[0];
        assert_eq!(last["Address"], address, "{last}");
    }
    world.stop().await;
}
