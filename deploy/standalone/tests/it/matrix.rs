//! Authorization matrix: every operation of the document, called without permission and by other
//! customers.

mod adapters;
pub(crate) mod operation;

use std::collections::{BTreeMap, btree_map::Entry};

use assay_testkit::Api;
use reqwest::{
    Method,
    multipart::{Form, Part},
};
use secrecy::ExposeSecret;
use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, Connection, PgConnection};
use uuid::Uuid;

use self::operation::{Needs, Operation, body, operations};
use crate::{customer::unique, installation::Installation, tenant::Tenant, world::World};

/// Permissions that a token can have.
const PERMISSIONS: [&str; 14] = [
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
    "ExecutionTimes",
    "Reserved3",
];

/// Sends a request and returns only the status, because some answers never end.
async fn send(api: &Api, operation: &Operation, path: &str, body: Option<Value>) -> u16 {
    let request = api.request(operation.method.clone(), path);
    let headers = operation.required_headers();
    let request = headers.fold(request, |request, (name, value)| request.header(name, value));
    let request = match (operation.media_type(), body) {
        (Some("application/json"), Some(body)) => request.json(&body),
        (Some("multipart/form-data"), _) => {
            let report = r#"<testsuite><testcase name="a" classname="b"/></testsuite>"#;
            request.multipart(Form::new().part("file", Part::text(report).file_name("junit.xml")))
        }
        (Some(media_type), _) => request.header("Content-Type", media_type).body("x"),
        (None, _) => request,
    };
    request.send().await.unwrap().status().as_u16()
}

fn random_parameter(_: usize, name: &str) -> String {
    if name.ends_with("Id") { Uuid::now_v7().to_string() } else { "Performance".to_owned() }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_operation_needs_exactly_the_documented_permissions() {
    let world = World::start().await;
    let anonymous = world.anonymous();
    let all = operations();
    assert!(all.len() > 120, "{} operations", all.len());
    for operation in &all {
        let path = operation.path(random_parameter);
        let body = body(operation, |_| Uuid::now_v7().to_string());
        let status = send(&anonymous, operation, &path, Some(body)).await;
        let is_open = operation.needs == Needs::Nothing || operation.name == "login";
        assert!(is_open || status == 401, "{} {path} without a token: {status}", operation.method);
    }
    let mut clients = BTreeMap::new();
    for operation in &all {
        let Needs::Permissions(one_of, all_of) = &operation.needs else { continue };
        for (permissions, may) in sufficient(one_of, all_of) {
            if let Entry::Vacant(vacant) = clients.entry(permissions.clone()) {
                vacant.insert(create_client(&world, &permissions).await);
            }
            let path = operation.path(random_parameter);
            let body = body(operation, |_| Uuid::now_v7().to_string());
            let status = send(&clients[&permissions], operation, &path, Some(body)).await;
            let request = format!("{} {path} with {permissions}: {status}", operation.method);
            assert_eq!(status == 403, !may, "{request}");
            assert!(status != 401 && status < 500, "{request}");
        }
    }
    world.stop().await;
}

/// Returns sets of permissions, and whether each is sufficient: one of the first list with all of the
/// second is, and all others are not without them.
fn sufficient(one_of: &[String], all_of: &[String]) -> Vec<(String, bool)> {
    let without = |lacking: &[String]| {
        let kept = PERMISSIONS.into_iter().filter(|one| !lacking.iter().any(|other| other == one));
        kept.collect::<Vec<_>>().join(", ")
    };
    let enough =
        one_of.iter().map(|one| ([std::slice::from_ref(one), all_of].concat().join(", "), true));
    let too_few = all_of.iter().map(|one| (without(std::slice::from_ref(one)), false));
    enough.chain([(without(one_of), false)]).chain(too_few).collect()
}

/// Returns a client with an API token of the administrator that has these permissions.
async fn create_client(world: &World, permissions: &str) -> Api {
    let token = json!({"Name": "Robot", "UsagePermission": permissions});
    let token = world.api.post("/api/users/current/tokens", token).await.created();
    world.anonymous().with_token(token["Secret"].as_str().unwrap())
}

/// All answers that users of a customer can read, by path.
async fn readable_answers(tenant: &Tenant) -> BTreeMap<String, String> {
    let mut seen = BTreeMap::new();
    for operation in operations() {
        // These answers never end, are changed by reads, do not belong to the customer, change a moment after the
        // request of an engine, are about a month, or end with a lease.
        let skipped = [
            "download_leased_file",
            "watch_notifications",
            "watch_live_log",
            "download_artifact",
            "list_keys",
            "list_engines",
            "get_statement",
        ];
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
        // Links have a new signature in each answer.
        let mut parts = body.split("?customer=");
        let start = parts.next().unwrap_or_default().to_owned();
        let rest = parts.map(|part| part.split_once('"').unwrap_or_default().1);
        seen.insert(path, rest.fold(start, |body, part| body + part));
    }
    seen
}

/// Requests that gave one customer access to a record of another.
#[derive(Default)]
struct Leaks(Vec<String>);

impl Leaks {
    fn check(&mut self, operation: &Operation, path: &str, what: &str, status: u16) {
        // The lease of the caller, which is checked first, is lost after a minute.
        let is_lost = status == 409 && operation.name == "download_leased_file";
        // Without the permission, the answer does not reveal whether the record exists.
        if ![403, 404, 422].contains(&status) && !is_lost {
            self.0.push(format!("{} {path}: {what} is answered with {status}", operation.method));
        }
    }
}

/// Calls every operation as `stranger`, with one id of `other` at a time in path, query and body.
async fn call_with_foreign_ids(stranger: &Tenant, other: &Tenant) -> Leaks {
    let mut leaks = Leaks::default();
    for operation in operations() {
        let own = |name: &str| stranger.id(name).to_owned();
        let parameters = operation.path_parameters();
        for (foreign, &parameter) in
            parameters.iter().enumerate().filter(|(_, name)| name.ends_with("Id"))
        {
            let path = operation
                .path(|at, name| if at == foreign { other.id(name).to_owned() } else { own(name) });
            let status = send(&stranger.api, &operation, &path, Some(body(&operation, own))).await;
            leaks.check(&operation, &path, parameter, status);
        }
        if operation.method != Method::GET && operation.media_type() == Some("application/json") {
            send_foreign_references(stranger, other, &operation, &mut leaks).await;
        }
        // The last event is a position in the stream of the caller.
        let is_foreign = |name: &&String| name.ends_with("Id") && *name != "lastEventId";
        for name in operation.query.iter().filter(is_foreign) {
            let path = operation.path(|_, name| own(name));
            let path = format!("{path}?{name}={}", other.id(name));
            let status = send(&stranger.api, &operation, &path, None).await;
            // An empty list is not a leak.
            if operation.method != Method::GET {
                leaks.check(&operation, &path, name, status);
            }
        }
    }
    leaks
}

/// Sends bodies that are accepted with ids of `stranger`, with one id of `other` at a time.
async fn send_foreign_references(
    stranger: &Tenant,
    other: &Tenant,
    operation: &Operation,
    leaks: &mut Leaks,
) {
    let path = operation.path(|_, name| stranger.id(name).to_owned());
    for (pointer, kind) in operation.references() {
        for (tenant, is_own) in [(stranger, true), (other, false)] {
            let mut body = body(operation, |name| stranger.id(name).to_owned());
            set(&mut body, &pointer, tenant.id(kind));
            // A user with the same email exists after the first request.
            if operation.name == "create_user" {
                body["Email"] = format!("{}@example.org", Uuid::now_v7()).into();
            }
            if operation.name == "open_execution" {
                body["Project"] = stranger.id("projectId").into();
                body["TestSet"] = stranger.id("testSetId").into();
                body["Key"] = Uuid::now_v7().to_string().into();
            }
            let status = send(&stranger.api, operation, &path, Some(body)).await;
            if is_own {
                let name = &operation.name;
                assert!(status < 300, "{name}: {pointer} of their own: {status}");
            } else {
                leaks.check(operation, &path, &pointer, status);
            }
        }
    }
}

/// Sets the value at a JSON pointer; creates missing parents.
fn set(body: &mut Value, pointer: &str, value: &str) {
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
async fn ids_of_other_customers_give_no_access_in_any_operation() {
    let assay = Installation::shared().await;
    let stranger = Tenant::new(&assay, &unique("strangers")).await;
    let other = Tenant::new(&assay, &unique("others")).await;
    let before = readable_answers(&other).await;
    let leaks = call_with_foreign_ids(&stranger, &other).await;
    assert!(leaks.0.is_empty(), "{:#?}", leaks.0);
    let after = readable_answers(&other).await;
    for (path, before) in before {
        assert_eq!(after[&path], before, "{path} has changed");
    }
}

/// Proves that the check can fail: gives records to the foreign customer, as a missing condition
/// would.
#[tokio::test(flavor = "multi_thread")]
async fn access_to_a_foreign_record_is_detected() {
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
    let leaks = call_with_foreign_ids(&stranger, &other).await.0;
    for operation in ["GET /api/webhooks/", "PUT /api/webhooks/", "DELETE /api/notifications/"] {
        assert!(leaks.iter().any(|leak| leak.starts_with(operation)), "{operation}: {leaks:#?}");
    }
    let elsewhere = |leak: &&String| !leak.contains("webhooks") && !leak.contains("notifications");
    assert_eq!(leaks.iter().find(elsewhere), None);
    world.stop().await;
}
