//! Updates: changed fields and versions.

use assay_proto::{
    Variable,
    catalog::{AutomationStep, Environment, Project, Subject, TestCase, TestPlan, TestSet},
    execution::TestReport,
};
use axum::body::Body;
use serde_json::{json, to_string};

use crate::api::Api;

const PROJECT: &str = "/api/projects/p";
const REPORT: &str = "/api/projects/p/testcases/c/testplans/t/testreports/r";
const SET: &str = "/api/projects/p/testsets/s";

#[tokio::test]
async fn an_update_changes_only_sent_and_writable_fields() {
    let api = Api::start().await;
    let body = json!({
        "Name": "n", "ReportTemplateId": null, "CustomerId": "x", "Id": 7, "DataVersion": null,
    });
    assert_eq!(api.json("PUT", PROJECT, body).await.ok()["Name"], "Name, ReportTemplateId");
    assert_eq!(api.json("PUT", PROJECT, "{}").await.ok()["Name"], "");
}

#[tokio::test]
async fn an_invalid_field_of_an_update_is_named() {
    let api = Api::start().await;
    for (body, field) in [
        (json!({"Name": null}), "/Name"),
        (json!({"Archived": 1}), "/Archived"),
        (json!({"DataVersion": 1}), "/DataVersion"),
        (json!([]), ""),
    ] {
        assert_eq!(api.json("PUT", PROJECT, body).await.invalid_fields(), [field]);
    }
    for wrong in [json!({"Status": null}), json!({"Status": 7}), json!({"Status": "Great"})] {
        assert_eq!(api.json("PUT", REPORT, wrong).await.invalid_fields(), ["/Status"]);
    }
    let cases = json!({"TestCases": [{"Id": "a", "Name": "x"}, {"Id": null}]});
    assert_eq!(api.json("PUT", SET, cases).await.invalid_fields(), ["/TestCases/1/Id"]);
}

#[tokio::test]
async fn a_stale_update_is_a_conflict_or_a_failed_precondition() {
    let api = Api::start().await;
    let put = |body: &str, tag: &str| {
        let request = api.request("PUT", PROJECT).header("If-Match", tag);
        let body = Body::from(body.to_owned());
        let api = &api;
        async move { api.send(request, body).await }
    };
    api.json("PUT", PROJECT, json!({"DataVersion": "1"})).await.ok();
    let stale = api.json("PUT", PROJECT, json!({"DataVersion": "0"})).await;
    stale.problem(409, "stale_data_version");

    put("{}", "\"1\"").await.ok();
    put("{}", "*").await.ok();
    // Only the version in the tag counts, so the tag of an answer is valid for the next update.
    let changed = put("{}", "\"1.0123456789abcdef\"").await;
    changed.ok();
    put("{}", changed.header("etag")).await.ok();
    put("{}", "\"0.0123456789abcdef\"").await.problem(412, "stale_data_version");
    // The header takes precedence.
    put(r#"{"DataVersion":"0"}"#, "\"1\"").await.ok();
    for stale in ["\"0\"", "W/\"1\"", "\"0\", \"1\""] {
        put("{}", stale).await.problem(412, "stale_data_version");
    }
}

#[tokio::test]
async fn a_get_with_a_body_updates_a_test_set() {
    let api = Api::start().await;
    let update = api.send(api.request("GET", SET), Body::from(r#"{"Name":"n","Tags":null}"#)).await;
    assert_eq!(update.ok()["Name"], "changed Name, Tags");
    assert_eq!(api.send(api.request("GET", SET), Body::from("[]")).await.invalid_fields(), [""]);
    let read = api.request("GET", SET).header("Content-Type", "text/plain");
    assert_eq!(api.send(read, Body::empty()).await.ok()["Name"], "p");
}

/// A test set as in an answer, with test cases of over 1,200 bytes each.
fn set_of(cases: usize) -> String {
    let case = |number: usize| TestCase {
        id: number.to_string(),
        description: "x".repeat(1000),
        ..TestCase::default()
    };
    let test_cases = (1..=cases).map(case).collect();
    to_string(&TestSet { data_version: "7".to_owned(), test_cases, ..TestSet::default() }).unwrap()
}

#[tokio::test]
async fn a_large_test_set_can_be_sent_back_unchanged() {
    let api = Api::start().await;
    let set = set_of(4000);
    assert!(set.len() > 4 << 20, "{}", set.len());
    for method in ["PUT", "GET"] {
        let set = Body::from(set.clone());
        let changed = api.send(api.request(method, SET), set).await.ok();
        assert_eq!(changed["Description"], "4000 to 4000");
        assert!(changed["Name"].as_str().unwrap().contains("TestCases"), "{changed}");
    }
    let malformed = Body::from(set.replacen("\"Id\":\"17\",", "\"Id\" \"17\",", 1));
    api.send(api.request("PUT", SET), malformed).await.problem(400, "malformed");
    let too_large = Body::from(" ".repeat((32 << 20) + 1));
    api.send(api.request("PUT", SET), too_large).await.problem(413, "too_large");
}

/// A record that was written in several bodies of 1 MiB can be sent back in one.
#[tokio::test]
async fn the_largest_records_can_be_sent_back_unchanged() {
    let api = Api::start().await;
    let text = || Some("\u{1}".repeat(64 << 10));
    let line = || "\u{1}".repeat(64 << 10);
    // They fit into a body of 1 MiB; the answer has more fields.
    let variables = || {
        let variable =
            |number: usize| Variable { name: format!("{number:04}"), ..Variable::default() };
        (0..10_000).map(variable).collect::<Vec<_>>()
    };
    let project = Project {
        data_version: "1".to_owned(),
        description: line(),
        report_template_id: text(),
        ..Default::default()
    };
    let case = TestCase { description: line(), ..Default::default() };
    let plan = TestPlan {
        test_type: 1,
        status: 1,
        description: text(),
        monitoring_message: text(),
        variables: variables(),
        ..Default::default()
    };
    let subject = Subject {
        subject_type: 1,
        uri: line(),
        variables: variables(),
        software_file_id: text(),
        software_file_name: text(),
        ..Default::default()
    };
    let environment = Environment { username: line(), password: line(), ..Default::default() };
    let report = TestReport {
        result: 1,
        status: 1,
        test_type: 1,
        change: 1,
        comment: text(),
        ..Default::default()
    };
    let steps: Vec<_> = (1..=10_000)
        .map(|step_nr| AutomationStep { step_nr, comment: "x".repeat(90), ..Default::default() })
        .collect();
    for (path, record) in [
        ("/api/projects/p", to_string(&project)),
        ("/api/projects/p/testcases/c", to_string(&case)),
        ("/api/projects/p/testcases/c/testplans/t", to_string(&plan)),
        ("/api/projects/p/testcases/c/testplans/t/automationSteps", to_string(&steps)),
        ("/api/projects/p/subjects/s", to_string(&subject)),
        ("/api/projects/p/environments/e", to_string(&environment)),
        (REPORT, to_string(&report)),
    ] {
        let answer = api.json("PUT", path, record.unwrap()).await;
        // The services are unreachable, but the body was accepted.
        let rejected = [400, 413, 422].contains(&answer.status.as_u16());
        assert!(!rejected, "{path}: {}", answer.status);
    }
}

#[tokio::test]
async fn a_get_whose_body_names_no_field_reads_a_test_set() {
    let api = Api::start().await;
    for body in ["{}", r#"{"Id":"s","LastSwName":null}"#] {
        let read = api.send(api.request("GET", SET), Body::from(body)).await;
        assert_eq!(read.ok()["Name"], "p", "{body}");
    }
    let misspelt = Body::from(r#"{"Nmae":"n"}"#);
    let refused = api.send(api.request("GET", SET), misspelt).await;
    assert_eq!(refused.invalid_fields(), ["/Nmae"]);
}
