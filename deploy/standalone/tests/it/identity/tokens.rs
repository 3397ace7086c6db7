//! Tokens: forgery, key rotation and sessions.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use assay_testkit::{Answer, Api, eventually};
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD as BASE64};
use reqwest::Method;
use secrecy::ExposeSecret;
use serde_json::{Value, json};
use sqlx::{Connection, PgConnection};
use tokio::time::interval;

use super::revocation::time_until_revoked;
use crate::{
    customer::Customer,
    installation::Installation,
    people::refine_token,
    world::{World, create_project, id},
};

const LOGOUT: &str = "/api/token/logout";

/// The parts of a token.
fn parts(token: &str) -> (Value, Value, String) {
    let parts: Vec<_> = token.split('.').collect();
    let json = |part: &str| serde_json::from_slice(&BASE64.decode(part).unwrap()).unwrap();
    (json(parts[0]), json(parts[1]), parts[2].to_owned())
}

fn forged(token: &str, change: impl FnOnce(&mut Value, &mut Value)) -> String {
    let (mut header, mut claims, signature) = parts(token);
    change(&mut header, &mut claims);
    let [header, claims] = [header, claims].map(|part| BASE64.encode(part.to_string()));
    format!("{header}.{claims}.{signature}")
}

/// Issues a token without hashing a password.
async fn new_token(api: &Api) -> String {
    let customer = api.get("/api/management/customers/current").await.ok();
    let token = refine_token(api, id(&customer)).await.ok();
    token["token"].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn all_forged_tokens_get_the_same_answer() {
    let assay = Installation::shared().await;
    let (api, good) = (assay.anonymous(), assay.api.token());
    assay.api.get("/api/projects").await.ok();
    let (header, claims, signature) = parts(good);
    assert_eq!(header["alg"], "EdDSA");
    assert!(claims["exp"].is_u64(), "{claims}");

    let unsigned = forged(good, |header, _| header["alg"] = json!("none"));
    let unsigned = unsigned.trim_end_matches(&signature);
    let mut wrong: Vec<String> = vec![
        String::new(),
        "nonsense".to_owned(),
        unsigned.to_owned(),
        format!("{unsigned}AAAA"),
        good[..good.len() - 2].to_owned(),
        format!("{good}.{signature}"),
        forged(good, |header, _| header["alg"] = json!("HS256")),
        forged(good, |header, _| header["kid"] = json!("../../../../dev/null")),
        forged(good, |header, _| header["kid"] = json!("unknown")),
        forged(good, |_, claims| claims["exp"] = json!("4102444800")),
        forged(good, |_, claims| drop(claims.as_object_mut().unwrap().remove("exp"))),
        forged(good, |_, claims| claims["aud"] = json!("other")),
        forged(good, |_, claims| claims["permissions"] = json!("CustomerManagement")),
        "assay_0123456789".to_owned(),
    ];
    wrong.push("x".repeat(7000));
    let mut seen = Vec::new();
    for token in wrong {
        for name in ["Authentication", "Authorization"] {
            let request = api.request(Method::GET, "/api/projects");
            let answer = Answer::of(request.header(name, format!("Bearer {token}"))).await;
            let mut problem = answer.is_problem(401, "unauthenticated");
            problem.as_object_mut().unwrap().remove("traceId");
            assert_eq!(answer.headers["www-authenticate"], "Bearer");
            seen.push(problem);
        }
    }
    seen.dedup();
    assert_eq!(seen.len(), 1, "{seen:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_are_rotated_without_a_failed_request() {
    let world = World::start().await;
    let api = world.anonymous();
    let old = world.api.token();
    let stop = AtomicBool::new(false);
    let traffic = async {
        let (mut count, mut ticks) = (0, interval(Duration::from_millis(50)));
        while !stop.load(Ordering::Acquire) {
            ticks.tick().await;
            world.api.get("/api/projects").await.ok();
            let new = new_token(&world.api).await;
            api.with_token(new).get("/api/projects").await.ok();
            count += 1;
        }
        count
    };
    let rotation = async {
        let kid = assay_identity::rotate_keys(world.identity_database(), world.seal_config())
            .await
            .unwrap();
        eventually("both keys to be public", || async {
            let keys = api.get("/.well-known/jwks.json").await.ok();
            let keys = keys["keys"].as_array().unwrap().clone();
            (keys.len() == 2 && keys.iter().any(|key| key["kid"] == kid.as_str())).then_some(())
        })
        .await;
        sign_now(&world).await;
        let new = eventually("a token of the new key", || async {
            let token = new_token(&world.api).await;
            (parts(&token).0["kid"] == kid.as_str()).then_some(token)
        })
        .await;
        for token in [new.as_str(), old] {
            api.with_token(token).get("/api/projects").await.ok();
        }
        stop.store(true, Ordering::Release);
    };
    let (count, ()) = tokio::join!(traffic, rotation);
    assert!(count > 10, "only {count} requests");
    world.stop().await;
}

/// Skips the time that verifiers have to load a new key.
async fn sign_now(world: &World) {
    let mut identity =
        PgConnection::connect(world.identity_database().expose_secret()).await.unwrap();
    sqlx::query("update signing_key set signs_from = now() where signs_from > now()")
        .execute(&mut identity)
        .await
        .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_public_keys_contain_no_private_part() {
    let answer = Installation::shared().await.anonymous().get("/.well-known/jwks.json").await;
    let keys = answer.ok();
    assert_eq!(answer.headers["content-type"], "application/jwk-set+json");
    for key in keys["keys"].as_array().unwrap() {
        assert_eq!((&key["kty"], &key["crv"]), (&json!("OKP"), &json!("Ed25519")));
        assert!(key.get("d").is_none(), "the private part");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn logging_out_ends_only_that_session() {
    let own = Customer::new().await;
    let grace = own.create_member("grace", "Login, Read").await;
    let other = own.assay.log_in(&grace.email).await;
    let customer = grace.api.get("/api/management/customers/current").await.ok();
    let refined = refine_token(&grace.api, id(&customer)).await.ok();
    let refined = grace.api.with_token(refined["token"].as_str().unwrap());

    let stranger = Customer::of(own.assay.clone()).await;
    let logout = refined.request(Method::POST, LOGOUT);
    assert_eq!(Answer::of(logout).await.expect(204).body, b"");
    for revoked in [&refined, &grace.api] {
        let elapsed = time_until_revoked(revoked).await;
        assert!(elapsed < Duration::from_secs(1), "{elapsed:?}");
        let again = Answer::of(revoked.request(Method::POST, LOGOUT)).await;
        again.is_problem(401, "unauthenticated");
    }
    for alive in [&other, &own.api, &stranger.api] {
        alive.get("/api/projects").await.ok();
    }
    let token = json!({"Name": "CI", "UsagePermission": "Read"});
    let token = other.post("/api/users/current/tokens", token).await.created();
    let machine = own.anonymous().with_token(token["Secret"].as_str().unwrap());
    let problem = Answer::of(machine.request(Method::POST, LOGOUT)).await;
    let problem = problem.is_problem(403, "forbidden");
    let detail = problem["detail"].as_str().unwrap();
    assert!(detail.contains("DELETE /api/users/current/tokens/"), "{detail}");
    machine.get("/api/projects").await.ok();
    let entries = own.api.get("/api/management/audit?action=LoggedOut").await.ok();
    assert_eq!(entries.as_array().unwrap().len(), 1, "{entries}");
    assert_eq!(entries[0]["UserId"], grace.id.as_str());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_name_appears_in_executions_at_once_and_ends_no_session() {
    let customer = Customer::new().await;
    let grace = customer.create_member("grace", "Login, Read, Write, Execute").await;
    let project = create_project(&grace.api).await;
    let set =
        grace.api.post(&format!("{project}/testsets"), json!({"Name": "All"})).await.created();
    let executions = format!("{project}/testsets/{}/executions", id(&set));
    let case = json!({"Name": "Log in", "Identifier": "LOGIN-1"});
    let case = grace.api.post(&format!("{project}/testcases"), case).await.created();
    let plans = format!("{project}/testcases/{}/testplans", id(&case));
    let plan = grace.api.post(&plans, json!({"Instances": 1})).await.created();
    let ready = json!({"Status": "ReadyForExecution"});
    grace.api.put(&format!("{plans}/{}", id(&plan)), ready).await.ok();
    let chosen = json!({"TestCases": [{"Id": id(&case)}]});
    grace.api.put(&format!("{project}/testsets/{}", id(&set)), chosen).await.ok();

    let rename = json!({"UserData": {"DisplayName": "Rear Admiral"}});
    customer.api.put(&format!("/api/users/{}", grace.id), rename).await.ok();
    eventually("the new name", || async {
        let made = grace.api.post(&executions, json!({"Mode": "External"})).await.created();
        (made["RequestUser"] == "Rear Admiral").then_some(())
    })
    .await;
}
