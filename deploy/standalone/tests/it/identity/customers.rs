//! Management of customers.

use std::collections::BTreeSet;

use assay_testkit::{Answer, Api};
use reqwest::Method;
use serde_json::{Value, json};

use super::revocation::time_until_revoked;
use crate::{
    people::{password_of, try_login},
    world::{World, id},
};

const CUSTOMERS: &str = "/api/management/customers";
const NONE: &str = "01a1b2c3-0000-7000-8000-000000000001";

fn path(customer: &Value) -> String {
    format!("{CUSTOMERS}/{}", id(customer))
}

fn fields(record: &Value) -> BTreeSet<&str> {
    record.as_object().unwrap().keys().map(String::as_str).collect()
}

fn subdomains(list: &Value) -> Vec<&str> {
    list.as_array().unwrap().iter().map(|one| one["Subdomain"].as_str().unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_customer_is_created_read_changed_archived_and_deleted() {
    let world = World::start().await;
    let api = &world.api;
    let made = api.post(CUSTOMERS, json!({"Name": "Acme", "Subdomain": "Acme"})).await;
    let acme = made.created();
    assert_eq!(made.headers["location"], path(&acme).as_str());
    let list_form = BTreeSet::from([
        "Id",
        "Name",
        "AccountNumber",
        "Address",
        "CostCenter",
        "Currency",
        "Tax",
        "Discounts",
        "MinimumConsumptionInH",
        "DueDays",
        "TechnicalName",
        "Subdomain",
        "Appliances",
        "DataVersion",
        "Archived",
    ]);
    assert_eq!(fields(&acme), list_form);
    assert_eq!((&acme["Subdomain"], &acme["Archived"]), (&json!("acme"), &json!(false)));

    let read = api.get(&path(&acme)).await;
    let details = read.ok();
    assert_eq!(&fields(&details) - &list_form, BTreeSet::from(["UserGroups"]));
    let etag = read.headers["etag"].to_str().unwrap();
    let version = acme["DataVersion"].as_str().unwrap();
    assert!(etag.starts_with(&format!("\"{version}.")), "{etag}");
    let groups: Vec<_> = details["UserGroups"].as_array().unwrap().iter().collect();
    let names: BTreeSet<_> = groups.iter().map(|group| group["Name"].as_str().unwrap()).collect();
    assert_eq!(names, BTreeSet::from(["Administrators", "Testers", "Viewers"]));
    let can = |group: &Value, what| group["UsagePermission"].as_str().unwrap().contains(what);
    assert!(!groups.iter().any(|group| can(group, "CustomerManagement")), "{details}");

    let change = json!({"Appliances": "pads, rigs", "DataVersion": acme["DataVersion"]});
    let changed = api.put(&path(&acme), change.clone()).await.ok();
    assert_eq!((&changed["Appliances"], &changed["Name"]), (&json!("pads, rigs"), &json!("Acme")));
    assert_ne!(changed["DataVersion"], acme["DataVersion"]);
    api.put(&path(&acme), change).await.is_problem(409, "stale_data_version");
    let conditional = api.request(Method::PUT, &path(&acme)).header("If-Match", etag);
    let conditional = Answer::of(conditional.json(&json!({"Name": "Other"}))).await;
    conditional.is_problem(412, "stale_data_version");
    assert_eq!(
        api.put(&path(&acme), json!({"Appliances": null})).await.ok()["Appliances"],
        json!(null)
    );

    let newest = world.create_customer("newest").await;
    assert_eq!(subdomains(&api.get(CUSTOMERS).await.ok())[..2], ["newest", "acme"]);
    api.put(&path(&acme), json!({"Archived": true})).await.ok();
    assert!(!subdomains(&api.get(CUSTOMERS).await.ok()).contains(&"acme"));
    assert_eq!(subdomains(&api.get(&format!("{CUSTOMERS}/archive")).await.ok()), ["acme"]);
    api.put(&path(&acme), json!({"Archived": false})).await.ok();

    assert_eq!(api.delete(&path(&newest)).await.expect(204).body, b"");
    for answer in [api.get(&path(&newest)).await, api.delete(&path(&newest)).await] {
        answer.is_problem(404, "not_found");
    }
    assert!(!subdomains(&api.get(CUSTOMERS).await.ok()).contains(&"newest"));
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_customers_are_rejected_with_their_fields() {
    let world = World::start().await;
    let api = &world.api;
    let acme = world.create_customer("acme").await;
    let duplicate = json!({"Name": "Other", "Subdomain": "ACME"});
    api.post(CUSTOMERS, duplicate.clone()).await.is_problem(409, "already_exists");
    let other = world.create_customer("other").await;
    api.put(&path(&other), duplicate).await.is_problem(409, "already_exists");

    for (body, field) in [
        (json!({"Name": "A", "Subdomain": "a.b"}), "/Subdomain"),
        (json!({"Name": "A", "Subdomain": ""}), "/Subdomain"),
        (json!({"Name": "A"}), "/Subdomain"),
        (json!({"Name": "A", "Subdomain": 7}), "/Subdomain"),
        (json!({"Name": " ", "Subdomain": "a"}), "/Name"),
        (json!({"Name": "a".repeat(256), "Subdomain": "a"}), "/Name"),
        (json!({"Name": "\u{0}", "Subdomain": "a"}), "/Name"),
        (json!({"Name": "A", "Subdomain": "a", "Appliances": ["pads"]}), "/Appliances"),
    ] {
        let problem = api.post(CUSTOMERS, body.clone()).await.is_problem(422, "invalid");
        assert_eq!(problem["errors"][0]["pointer"], field, "{body}");
    }
    for body in [json!({"Name": null}), json!({"Archived": null}), json!({"Archived": "yes"})] {
        api.put(&path(&acme), body).await.is_problem(422, "invalid");
    }
    for missing in [NONE, "0", "ACME", &id(&acme).to_uppercase(), "%00", "..%2f"] {
        let path = format!("{CUSTOMERS}/{missing}");
        api.get(&path).await.is_problem(404, "not_found");
        api.put(&path, json!({"Name": "X"})).await.is_problem(404, "not_found");
        api.delete(&path).await.is_problem(404, "not_found");
    }
    world.stop().await;
}

/// Calls every operation on other customers.
async fn all(api: &Api, customer: &str) -> Vec<Answer> {
    let path = format!("{CUSTOMERS}/{customer}");
    vec![
        api.get(CUSTOMERS).await,
        api.get(&format!("{CUSTOMERS}/archive")).await,
        api.get(&path).await,
        api.post(CUSTOMERS, json!({"Name": "A", "Subdomain": "a"})).await,
        api.put(&path, json!({"Name": "A"})).await,
        api.delete(&path).await,
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn other_customers_need_the_customer_management_permission() {
    let world = World::start().await;
    let acme = world.create_customer("acme").await;
    let admin = world.act_for(&acme).await;
    let everything_else = "Login, Read, Write, UserManagement, AccessSecrets, UserSettings";
    let member = world.create_member(&admin, "grace@example.org", everything_else).await;
    for customer in [id(&acme), NONE] {
        for answer in all(&member.api, customer).await {
            answer.is_problem(403, "forbidden");
        }
        for answer in all(&world.anonymous(), customer).await {
            answer.is_problem(401, "unauthenticated");
        }
    }
    let powerless = world.create_member(&admin, "alan@example.org", "Login").await;
    let current = powerless.api.get(&format!("{CUSTOMERS}/current")).await.ok();
    assert_eq!(id(&current), id(&acme), "every user can read the current customer");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn users_of_an_archived_customer_cannot_log_in_until_it_is_unarchived() {
    let world = World::start().await;
    let acme = world.create_customer("acme").await;
    let grace =
        world.create_member(&world.act_for(&acme).await, "grace@example.org", "Login, Read").await;
    let log_in =
        || async { try_login(&world.anonymous(), &grace.email, &password_of(&grace.email)).await };

    world.api.put(&path(&acme), json!({"Archived": true})).await.ok();
    time_until_revoked(&grace.api).await;
    log_in().await.is_problem(401, "unauthenticated");
    world.api.put(&path(&acme), json!({"Archived": false})).await.ok();
    let token = log_in().await.ok();
    let back = grace.api.with_token(token["token"].as_str().unwrap());
    back.get("/api/projects").await.ok();
    grace.api.get("/api/projects").await.is_problem(401, "unauthenticated");

    world.api.delete(&path(&acme)).await.expect(204);
    time_until_revoked(&back).await;
    log_in().await.is_problem(401, "unauthenticated");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_operators_customer_cannot_be_archived_or_deleted() {
    let world = World::start().await;
    let own = world.api.get(&format!("{CUSTOMERS}/current")).await.ok();
    assert_eq!(world.api.put(&path(&own), json!({"Archived": true})).await.status, 409);
    assert_eq!(world.api.delete(&path(&own)).await.status, 409);
    world.api.get("/api/projects").await.ok();
    world.stop().await;
}
