//! API tokens of machines.

use std::time::{Duration, Instant};

use assay_testkit::{Answer, Api, eventually};
use reqwest::Method;
use serde_json::{Value, json};

use super::revocation::time_until_revoked;
use crate::{
    customer::Customer,
    people::{GROUPS, refine_token},
    world::id,
};

const TOKENS: &str = "/api/users/current/tokens";

async fn make(api: &Api, permissions: &str) -> Value {
    let body = json!({"Name": "Nightly", "UsagePermission": permissions, "ExpiresAt": null});
    api.post(TOKENS, body).await.created()
}

fn secret(token: &Value) -> &str {
    token["Secret"].as_str().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_api_token_has_only_the_granted_permissions() {
    let customer = Customer::new().await;
    let grace = customer.create_member("grace", "Login, Read, Write").await;
    let invalid = json!({"UsagePermission": "Read", "ExpiresAt": "soon"});
    let problem = grace.api.post(TOKENS, invalid).await.is_problem(422, "invalid");
    assert_eq!(problem["errors"][0]["pointer"], "/ExpiresAt");
    let body = json!({"Name": "Nightly", "UsagePermission": "Write, Read"});
    let made = grace.api.post(TOKENS, body).await;
    let token = made.created();
    assert_eq!(made.headers["location"], format!("{TOKENS}/{}", id(&token)).as_str());
    assert_eq!(token["UsagePermission"], "Read, Write");
    assert_eq!((&token["ExpiresAt"], &token["LastUsedAt"]), (&json!(null), &json!(null)));

    let api = customer.anonymous();
    for (name, value) in [
        ("Authentication", secret(&token).to_owned()),
        ("Authentication", format!("Bearer {}", secret(&token))),
        ("Authorization", format!("Bearer {}", secret(&token))),
    ] {
        let request = api.request(Method::GET, "/api/projects").header(name, value);
        Answer::of(request).await.ok();
    }
    let machine = api.with_token(secret(&token));
    machine.post("/api/projects", json!({"Name": "Rocket", "Description": ""})).await.created();
    machine.get("/api/management/customers").await.is_problem(403, "forbidden");
    let current = machine.get("/api/management/customers/current").await.ok();
    refine_token(&machine, id(&current)).await.is_problem(403, "forbidden");
    let more = json!({"Name": "More", "UsagePermission": "Read"});
    machine.post(TOKENS, more).await.is_problem(403, "forbidden");

    let readers = api.with_token(secret(&make(&grace.api, "Read").await));
    readers.get("/api/projects").await.ok();
    readers.post("/api/projects", json!({"Name": "X"})).await.is_problem(403, "forbidden");

    let list = eventually("the time of the last use", || async {
        let list = grace.api.get(TOKENS).await.ok();
        list[1]["LastUsedAt"].is_string().then_some(list)
    })
    .await;
    assert_eq!(list.as_array().unwrap().len(), 2);
    assert_eq!(id(&list[1]), id(&token), "newest first");
    assert!(list[0].get("Secret").is_none(), "{list}");
}

#[tokio::test(flavor = "multi_thread")]
async fn deleting_an_api_token_revokes_it_within_a_second() {
    let customer = Customer::new().await;
    let grace = customer.create_member("grace", "Login, Read").await;
    let (dead, alive) = (make(&grace.api, "Read").await, make(&grace.api, "Read").await);
    let [revoked_machine, alive_machine] =
        [&dead, &alive].map(|token| customer.anonymous().with_token(secret(token)));
    revoked_machine.get("/api/projects").await.ok();
    alive_machine.get("/api/projects").await.ok();

    let path = format!("{TOKENS}/{}", id(&dead));
    customer.api.delete(&path).await.is_problem(404, "not_found");
    grace.api.delete(&path).await.expect(204);
    let elapsed = time_until_revoked(&revoked_machine).await;
    assert!(elapsed < Duration::from_secs(1), "{elapsed:?}");
    alive_machine.get("/api/projects").await.ok();
    grace.api.get("/api/projects").await.ok();
    grace.api.delete(&path).await.is_problem(404, "not_found");
    assert_eq!(grace.api.get(TOKENS).await.ok().as_array().unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_api_token_loses_the_permissions_that_its_user_loses() {
    let customer = Customer::new().await;
    let grace = customer.create_member("grace", "Login, Read, Write").await;
    let token = make(&grace.api, "Read, Write").await;
    let machine = customer.anonymous().with_token(secret(&token));
    let write = || machine.post("/api/projects", json!({"Name": "Rocket", "Description": ""}));
    write().await.created();

    let path = format!("{GROUPS}/{}", grace.group);
    customer.api.put(&path, json!({"UsagePermission": "Login, Read"})).await.ok();
    let started = Instant::now();
    eventually("writes to be rejected", || async { (write().await.status == 403).then_some(()) })
        .await;
    assert!(started.elapsed() < Duration::from_secs(1), "{:?}", started.elapsed());
    machine.get("/api/projects").await.ok();

    customer.api.delete(&format!("/api/users/{}", grace.id)).await.expect(204);
    let elapsed = time_until_revoked(&machine).await;
    assert!(elapsed < Duration::from_secs(1), "{elapsed:?}");
}
