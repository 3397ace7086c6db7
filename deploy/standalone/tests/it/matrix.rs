//! Who may do what to which records: every operation of the document, tried by those who may not.

pub(crate) mod operation;

use std::collections::BTreeMap;

use assay_testkit::Api;
use reqwest::Method;
use secrecy::ExposeSecret;
use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, Connection, PgConnection};
use uuid::Uuid;

use self::operation::{Needs, Operation, body, operations};
use crate::{tenant::Tenant, world::World};

/// What can be granted, as far as it opens anything.
const PERMISSIONS: [&str; 13] = [
    "Read",
    "Write",
    "Execute",
    "Accept",
    "Reject",
    "UserSettings",
    "UserManagement",
    "Automation",
    "ClaimManagement",
    "CustomerManagement",
    "AccessSecrets",
    "Invoicing",
    "Reserved3",
];

/// Sends a request and looks at the status only: some answers never end.
async fn send(api: &Api, operation: &Operation, path: &str, body: Option<Value>) -> u16 {
    let request = api.request(operation.method.clone(), path);
    let request = match (operation.media_type(), body) {
        (Some("application/json"), Some(body)) => request.json(&body),
        (Some("application/xml"), _) => request
            .header("Content-Type", "application/xml")
            .body(r#"<testsuite><testcase name="a" classname="b"/></testsuite>"#),
        (Some(media_type), _) => request.header("Content-Type", media_type).body("x"),
        (None, _) => request,
    };
    request.send().await.unwrap().status().as_u16()
}

fn anything(_: usize, name: &str) -> String {
    if name.ends_with("Id") { Uuid::now_v7().to_string() } else { "Performance".to_owned() }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_operation_is_open_to_whom_the_document_says_and_to_nobody_else() {
    let world = World::start().await;
    let anonymous = world.anonymous();
    let all = operations();
    assert!(all.len() > 120, "{} operations", all.len());
    for operation in &all {
        let path = operation.path(anything);
        let body = body(operation, |_| Uuid::now_v7().to_string());
        let status = send(&anonymous, operation, &path, Some(body)).await;
        let is_open = operation.needs == Needs::Nothing || operation.name == "login";
        assert!(is_open || status == 401, "{} {path} without a token: {status}", operation.method);
    }
    for permission in PERMISSIONS {
        let token = json!({"Name": permission, "UsagePermission": permission});
        let token = world.api.post("/api/users/current/tokens", token).await.created();
        let api = anonymous.with_token(token["Secret"].as_str().unwrap());
        for operation in &all {
            let Needs::AnyOf(wanted) = &operation.needs else { continue };
            let path = operation.path(anything);
            let body = body(operation, |_| Uuid::now_v7().to_string());
            let status = send(&api, operation, &path, Some(body)).await;
            let may = wanted.iter().any(|wanted| wanted == permission);
            assert_eq!(
                status == 403,
                !may,
                "{} {path} with {permission} alone: {status}",
                operation.method
            );
            assert!(status != 401 && status < 500, "{} {path}: {status}", operation.method);
        }
    }
    world.stop().await;
}

/// All that a customer's people can read, by path.
async fn everything(tenant: &Tenant) -> BTreeMap<String, String> {
    let mut seen = BTreeMap::new();
    for operation in operations() {
        // What lasts for ever, what is read is noted there, or is not the customer's.
        let skipped = ["watch_notifications", "download_artifact", "list_keys"];
        if operation.method != Method::GET
            || operation.name.ends_with("_recent")
            || skipped.contains(&operation.name.as_str())
        {
            continue;
        }
        let path = operation.path(|_, name| tenant.id(name).to_owned());
        let answer = tenant.api.get(&path).await;
        if answer.status == 403 && operation.path(|_, name| name.to_owned()).contains("/customers")
        {
            continue;
        }
        let body = String::from_utf8_lossy(&answer.expect(200).body).into_owned();
        // Links are signed anew each time.
        let mut parts = body.split("?customer=");
        let first = parts.next().unwrap_or_default().to_owned();
        let rest = parts.map(|part| part.split_once('"').unwrap_or_default().1);
        seen.insert(path, rest.fold(first, |body, part| body + part));
    }
    seen
}

/// What a stranger was answered who should have been told that there is no such record.
#[derive(Default)]
struct Leaks(Vec<String>);

impl Leaks {
    fn note(&mut self, operation: &Operation, path: &str, what: &str, status: u16) {
        // Who may not call the operation at all is not told whether there is a record.
        if ![403, 404, 422].contains(&status) {
            self.0.push(format!("{} {path}: {what} is answered with {status}", operation.method));
        }
    }
}

/// Has a stranger put the ids of others wherever an id may be.
async fn try_everything(stranger: &Tenant, other: &Tenant) -> Leaks {
    let mut leaks = Leaks::default();
    for operation in operations() {
        let own = |name: &str| stranger.id(name).to_owned();
        let places = operation.places();
        for (foreign, &place) in places.iter().enumerate().filter(|(_, name)| name.ends_with("Id"))
        {
            let path = operation
                .path(|at, name| if at == foreign { other.id(name).to_owned() } else { own(name) });
            let status = send(&stranger.api, &operation, &path, Some(body(&operation, own))).await;
            leaks.note(&operation, &path, place, status);
        }
        if operation.method != Method::GET && operation.media_type() == Some("application/json") {
            try_references(stranger, other, &operation, &mut leaks).await;
        }
        for name in operation.query.iter().filter(|name| name.ends_with("Id")) {
            let path = operation.path(|_, name| own(name));
            let path = format!("{path}?{name}={}", other.id(name));
            let status = send(&stranger.api, &operation, &path, None).await;
            // A filter that finds nothing is no leak.
            if operation.method != Method::GET {
                leaks.note(&operation, &path, name, status);
            }
        }
    }
    leaks
}

/// Has a stranger name others' records in a body that would be taken with their own.
async fn try_references(
    stranger: &Tenant,
    other: &Tenant,
    operation: &Operation,
    leaks: &mut Leaks,
) {
    let path = operation.path(|_, name| stranger.id(name).to_owned());
    for (pointer, kind) in operation.references() {
        for (tenant, is_own) in [(stranger, true), (other, false)] {
            let mut body = body(operation, |name| stranger.id(name).to_owned());
            put(&mut body, &pointer, tenant.id(kind));
            // What was reported already, is no change.
            if operation.name == "create_user" {
                body["Email"] = format!("{}@example.org", Uuid::now_v7()).into();
            }
            let status = send(&stranger.api, operation, &path, Some(body)).await;
            if is_own {
                let name = &operation.name;
                assert!(status < 300, "{name}: {pointer} of their own: {status}");
            } else {
                leaks.note(operation, &path, &pointer, status);
            }
        }
    }
}

/// Sets what a JSON pointer leads to, and makes what is missing on the way.
fn put(body: &mut Value, pointer: &str, value: &str) {
    let mut at = body;
    for part in pointer.split('/').skip(1) {
        at = if part == "0" {
            if !at.is_array() {
                *at = json!([{}]);
            }
            &mut at[0]
        } else {
            if !at.is_object() {
                *at = json!({});
            }
            &mut at[part]
        };
    }
    *at = value.into();
}

#[tokio::test(flavor = "multi_thread")]
async fn no_id_of_another_customer_opens_anything_anywhere() {
    let world = World::start().await;
    let stranger = Tenant::new(&world, "strangers").await;
    let other = Tenant::new(&world, "others").await;
    let before = everything(&other).await;
    let leaks = try_everything(&stranger, &other).await;
    assert!(leaks.0.is_empty(), "{:#?}", leaks.0);
    let after = everything(&other).await;
    for (path, before) in before {
        assert_eq!(after[&path], before, "{path} has changed");
    }
    world.stop().await;
}

/// Proof that the matrix can fail: records that a missing condition would show are shown.
#[tokio::test(flavor = "multi_thread")]
async fn a_record_that_is_let_through_is_noticed() {
    let world = World::start().await;
    let stranger = Tenant::new(&world, "strangers").await;
    let other = Tenant::new(&world, "others").await;
    let mut db = PgConnection::connect(world.databases()[3].expose_secret()).await.unwrap();
    for table in ["webhook", "notification"] {
        let give =
            format!("update {table} set customer_id = $1::uuid where customer_id = $2::uuid");
        let give = sqlx::query(AssertSqlSafe(give));
        give.bind(stranger.id("customerId"))
            .bind(other.id("customerId"))
            .execute(&mut db)
            .await
            .unwrap();
    }
    let leaks = try_everything(&stranger, &other).await.0;
    for operation in ["GET /api/webhooks/", "PUT /api/webhooks/", "DELETE /api/notifications/"] {
        assert!(leaks.iter().any(|leak| leak.starts_with(operation)), "{operation}: {leaks:#?}");
    }
    let elsewhere = |leak: &&String| !leak.contains("webhooks") && !leak.contains("notifications");
    assert_eq!(leaks.iter().find(elsewhere), None);
    world.stop().await;
}
