//! Management of customers.

use std::collections::BTreeSet;

use assay_testkit::Answer;
use reqwest::Method;
use serde_json::{Value, json};

use crate::{customer::unique, installation::Installation, world::id};

const CUSTOMERS: &str = "/api/management/customers";

fn path(customer: &Value) -> String {
    format!("{CUSTOMERS}/{}", id(customer))
}

fn fields(record: &Value) -> BTreeSet<&str> {
    record.as_object().unwrap().keys().map(String::as_str).collect()
}

/// The subdomains of a list, of these customers.
fn listed<'a>(list: &Value, customers: [&'a Value; 2]) -> Vec<&'a str> {
    let all = list.as_array().unwrap().iter().map(id);
    let own = all.filter_map(|listed| customers.into_iter().find(|one| id(one) == listed));
    own.map(|customer| customer["Subdomain"].as_str().unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_customer_is_created_read_changed_archived_and_deleted() {
    let assay = Installation::shared().await;
    let api = &assay.api;
    let subdomain = unique("acme");
    let body = json!({"Name": "Acme", "Subdomain": subdomain.to_uppercase()});
    let made = api.post(CUSTOMERS, body.clone()).await;
    api.post(CUSTOMERS, body).await.is_problem(409, "already_exists");
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
        "PricePerHour",
        "DueDays",
        "TechnicalName",
        "Subdomain",
        "Appliances",
        "DataVersion",
        "Archived",
    ]);
    assert_eq!(fields(&acme), list_form);
    assert_eq!((&acme["Subdomain"], &acme["Archived"]), (&json!(subdomain), &json!(false)));

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

    let newest = assay.create_customer(&unique("newest")).await;
    let both = [&newest, &acme];
    let [newest_name, acme_name] = both.map(|customer| customer["Subdomain"].as_str().unwrap());
    assert_eq!(listed(&api.get(CUSTOMERS).await.ok(), both), [newest_name, acme_name]);
    api.put(&path(&acme), json!({"Archived": true})).await.ok();
    assert_eq!(listed(&api.get(CUSTOMERS).await.ok(), both), [newest_name]);
    let archive = api.get(&format!("{CUSTOMERS}/archive")).await.ok();
    assert_eq!(listed(&archive, both), [acme_name]);
    api.put(&path(&acme), json!({"Archived": false})).await.ok();

    assert_eq!(api.delete(&path(&newest)).await.expect(204).body, b"");
    for missing in [id(&newest), "0", acme_name, &id(&acme).to_uppercase(), "%00", "..%2f"] {
        let path = format!("{CUSTOMERS}/{missing}");
        api.get(&path).await.is_problem(404, "not_found");
        api.put(&path, json!({"Name": "X"})).await.is_problem(404, "not_found");
        api.delete(&path).await.is_problem(404, "not_found");
    }
    assert_eq!(listed(&api.get(CUSTOMERS).await.ok(), both), [acme_name]);
}
