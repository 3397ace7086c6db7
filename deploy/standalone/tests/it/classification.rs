//! Suites, labels and links of tests: from the report of a tool to test cases, test reports, filters
//! and exports.

use assay_testkit::{Answer, Api};
use reqwest::Method;
use serde_json::{Value, json};

use crate::{
    customer::Customer,
    junit::upload,
    reports::report_path,
    world::{create_project, id},
};

const JUNIT: &str = r#"<testsuites><testsuite name="Shop"><testsuite name="Checkout">
    <testcase classname="Cart" name="pays"><properties>
        <property name="tag" value="smoke"/><property name="owner" value="ada"/>
        <property name="issue" value="https://tracker.example.com/browse/SHOP-7"/>
    </properties></testcase></testsuite>
    <testsuite name="Depot"><testcase classname="Depot" name="ships"><failure message="lost"/>
    </testcase></testsuite></testsuite></testsuites>"#;

/// The identifiers of the records of a list, and of none else.
async fn found(api: &Api, path: &str, field: &str) -> Vec<String> {
    let list = api.get(path).await.ok();
    let text = |record: &Value| record[field].as_str().unwrap().to_owned();
    let mut found: Vec<_> = list.as_array().unwrap().iter().map(text).collect();
    found.sort();
    found
}

async fn create_set(api: &Api, project: &str) -> String {
    let set = json!({"Name": "Nightly"});
    let set = api.post(&format!("{project}/testsets"), set).await.created();
    format!("{project}/testsets/{}", id(&set))
}

async fn export(api: &Api, execution: &str, format: &str) -> String {
    let answer = Answer::of(api.request(Method::GET, &format!("{execution}/{format}"))).await;
    assert_eq!(answer.status, 200);
    String::from_utf8(answer.body).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn tests_are_found_by_the_suites_labels_and_links_of_their_tool() {
    let api = &Customer::new().await.api;
    let project = create_project(api).await;
    let set = create_set(api, &project).await;
    let uploaded = upload(api, &set, JUNIT).await.created();
    let execution = format!("{project}/executions/{}", id(&uploaded));

    let report = &uploaded["TestReports"][0];
    let report = api.get(&report_path(&project, report)).await.ok();
    let case = report["TestCaseId"].as_str().unwrap();
    let case = api.get(&format!("{project}/testcases/{case}")).await.ok();
    for record in [&report, &case] {
        assert_eq!(record["Suites"], json!(["Shop", "Checkout"]));
        assert_eq!(record["Labels"][0], json!({"Name": "tag", "Value": "smoke"}));
        let target = "https://tracker.example.com/browse/SHOP-7";
        assert_eq!(record["Links"], json!([{"Kind": "issue", "Target": target}]));
    }
    for (query, expected) in [
        ("tag=smoke", &["Cart.pays"][..]),
        ("tag=owner:ada", &["Cart.pays"]),
        ("link=SHOP-7", &["Cart.pays"]),
        ("suite=Shop", &["Cart.pays", "Depot.ships"]),
        ("suite=Depot&tag=smoke", &[]),
        ("suite=&tag=", &["Cart.pays", "Depot.ships"]),
    ] {
        let cases = found(api, &format!("{project}/testcases?{query}"), "Identifier").await;
        assert_eq!(cases, expected, "{query}");
        let reports = format!("{execution}/reports?{query}");
        assert_eq!(found(api, &reports, "TestCaseIdentifier").await, expected, "{query}");
        let exported = format!("{project}/testcases/export?format=json&{query}");
        assert_eq!(found(api, &exported, "Identifier").await, expected, "{query}");
    }

    let csv = api.request(Method::GET, &format!("{project}/testcases/export?format=csv"));
    let csv = String::from_utf8(Answer::of(csv).await.body).unwrap();
    assert!(csv.contains(",Shop > Checkout,\"tag:smoke, owner:ada, issue:https:"), "{csv}");
}

#[tokio::test(flavor = "multi_thread")]
async fn exports_keep_where_tests_belong() {
    let api = &Customer::new().await.api;
    let project = create_project(api).await;
    let set = create_set(api, &project).await;
    let first = upload(api, &set, JUNIT).await.created();
    let first = format!("{project}/executions/{}", id(&first));
    let fields = async |execution: &str| {
        let reports = api.get(&format!("{execution}/reports")).await.ok();
        let fields = |report: &Value| ["Suites", "Labels", "Links"].map(|it| report[it].clone());
        reports.as_array().unwrap().iter().map(fields).collect::<Vec<_>>()
    };
    let expected = fields(&first).await;

    let ctrf = export(api, &first, "ctrf").await;
    let request = api.request(Method::POST, &format!("{set}/results"));
    let request = request.header("Content-Type", "application/json").body(ctrf);
    let again = Answer::of(request).await.created();
    let again = fields(&format!("{project}/executions/{}", id(&again))).await;
    let sorted = |labels: &Value| {
        let mut labels: Vec<_> = labels.as_array().unwrap().iter().map(Value::to_string).collect();
        labels.sort();
        labels
    };
    for ([suites, labels, links], [suites_again, labels_again, links_again]) in
        expected.iter().zip(&again)
    {
        assert_eq!((suites, links), (suites_again, links_again));
        assert_eq!(sorted(labels), sorted(labels_again));
    }

    let junit = upload(api, &set, export(api, &first, "junit").await).await.created();
    let junit = fields(&format!("{project}/executions/{}", id(&junit))).await;
    assert_eq!(junit[0][1..], expected[0][1..], "labels and links");

    let names = json!({"Project": id(&api.get(&project).await.ok()), "TestSet": "Nightly"});
    let open = api.post("/api/executions", names).await.created();
    let open = format!("{project}/executions/{}", id(&open));
    let lines = export(api, &first, "results").await;
    let request = api.request(Method::POST, &format!("{open}/results"));
    Answer::of(request.header("Content-Type", "application/x-ndjson").body(lines)).await.ok();
    assert_eq!(fields(&open).await, expected);
}
