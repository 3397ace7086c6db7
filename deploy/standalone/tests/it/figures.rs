//! The figures of a customer that its operator sets: for statements, and the target groups that it may use.

use assay_testkit::eventually;
use serde_json::{Value, json};

use crate::{
    customer::Customer,
    world::{create_project, id},
};

/// Changes the record of a customer, as its operator does.
async fn change(customer: &Customer, changes: Value) {
    let current = customer.api.get("/api/management/customers/current").await.ok();
    let path = format!("/api/management/customers/{}", id(&current));
    customer.assay.api.put(&path, changes).await.ok();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_statement_charges_the_hours_of_execution_of_a_month() {
    let customer = Customer::new().await;
    let api = &customer.api;
    let project = create_project(api).await;
    let set = api.post(&format!("{project}/testsets"), json!({"Name": "Smoke"})).await.created();
    let results = format!("{project}/testsets/{}/results", id(&set));
    // Two hours and a half.
    let report =
        "<testsuite><testcase name='a' time='5400'/><testcase name='b' time='3600'/></testsuite>";
    let upload = api.request(reqwest::Method::POST, &results).header("Content-Type", "text/xml");
    let execution = assay_testkit::Answer::of(upload.body(report)).await.created();
    let times = eventually("the execution time", || async {
        let times = api.get("/api/executiontimes").await.ok();
        (times != json!([])).then_some(times)
    });
    let times = times.await;
    let [time] = &times.as_array().unwrap()[..] else { panic!("{times}") };
    assert_eq!((&time["DurationInH"], &time["Instances"]), (&json!(2.5), &json!(2)), "{time}");
    assert_eq!(time["TestSetName"], "Smoke");
    let month = execution["CompletionDateTime"].as_str().unwrap()[..7].to_owned();
    assert_eq!(time["Month"], json!(month));

    let path = format!("/api/management/customers/current/statement?month={month}");
    assert_eq!(api.get(&path).await.ok()["TotalAmount"], Value::Null);
    change(&customer, json!({"PricePerHour": 4, "Tax": 10, "Discounts": "50"})).await;
    let statement = api.get(&path).await.ok();
    assert_eq!((&statement["Amount"], &statement["NetAmount"]), (&json!(10.0), &json!(5.0)));
    assert_eq!((&statement["TotalAmount"], &statement["IsFinal"]), (&json!(5.5), &json!(false)));
    change(&customer, json!({"MinimumConsumptionInH": 10})).await;
    assert_eq!(api.get(&path).await.ok()["TotalAmount"], json!(22.0));
    let wrong = "/api/management/customers/current/statement?month=November";
    api.get(wrong).await.is_problem(422, "invalid");
}

#[tokio::test(flavor = "multi_thread")]
async fn appliances_limit_target_groups() {
    let customer = Customer::new().await;
    let api = &customer.api;
    let environments = format!("{}/environments", create_project(api).await);
    let of = |group: &str| json!({"Name": "Lab", "TargetGroup": group});
    let old = api.post(&environments, of("mac")).await.created();
    change(&customer, json!({"Appliances": "linux, windows"})).await;
    eventually("the appliances", || async {
        let refused = api.post(&environments, of("mac")).await;
        (refused.status == 422).then_some(())
    })
    .await;
    api.post(&environments, of("linux")).await.created();
    api.post(&environments, of("")).await.created();
    let path = format!("{environments}/{}", id(&old));
    api.put(&path, json!({"Name": "Old lab", "TargetGroup": "mac"})).await.ok();
    api.put(&path, json!({"TargetGroup": "bsd"})).await.is_problem(422, "invalid");
    let leases = "/api/automation/leases";
    eventually("the appliances of engines", || async {
        let refused = api.post(leases, json!({"TargetGroup": "mac"})).await;
        (refused.status == 422).then_some(())
    })
    .await;
    assert_eq!(api.post(leases, json!({"TargetGroup": "linux"})).await.ok(), json!([]));

    change(&customer, json!({"Appliances": null})).await;
    eventually("all target groups", || async {
        (api.post(&environments, of("mac")).await.status == 201).then_some(())
    })
    .await;
}
