//! Updates: what they change, and what they are based on.

use axum::body::Body;
use serde_json::json;

use crate::api::Api;

const PROJECT: &str = "/api/projects/p";
const REPORT: &str = "/api/projects/p/testcases/c/testplans/t/testreports/r";
const SET: &str = "/api/projects/p/testsets/s";

#[tokio::test]
async fn only_what_is_sent_and_writable_is_changed() {
    let api = Api::start().await;
    let body = json!({
        "Name": "n", "ReportTemplateId": null, "CustomerId": "x", "Id": 7, "DataVersion": null,
    });
    assert_eq!(api.json("PUT", PROJECT, body).await.ok()["Name"], "Name, ReportTemplateId");
    assert_eq!(api.json("PUT", PROJECT, "{}").await.ok()["Name"], "");
}

#[tokio::test]
async fn a_wrong_field_of_an_update_is_named() {
    let api = Api::start().await;
    for (body, field) in [
        (json!({"Name": null}), "/Name"),
        (json!({"Archived": 1}), "/Archived"),
        (json!({"DataVersion": 1}), "/DataVersion"),
        (json!([]), ""),
    ] {
        assert_eq!(api.json("PUT", PROJECT, body).await.wrong_fields(), [field]);
    }
    for wrong in [json!({"Status": null}), json!({"Status": 7}), json!({"Status": "Great"})] {
        assert_eq!(api.json("PUT", REPORT, wrong).await.wrong_fields(), ["/Status"]);
    }
    let cases = json!({"TestCases": [{"Id": "a", "Name": "x"}, {"Id": null}]});
    assert_eq!(api.json("PUT", SET, cases).await.wrong_fields(), ["/TestCases/1/Id"]);
}

#[tokio::test]
async fn a_stale_change_is_a_conflict_or_a_failed_precondition() {
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
    // Of the tag of an answer, only the version counts: the next change may be based on this one.
    let changed = put("{}", "\"1.0123456789abcdef\"").await;
    changed.ok();
    put("{}", changed.header("etag")).await.ok();
    put("{}", "\"0.0123456789abcdef\"").await.problem(412, "stale_data_version");
    // The header wins.
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
    let read = api.request("GET", SET).header("Content-Type", "text/plain");
    assert_eq!(api.send(read, Body::empty()).await.ok()["Name"], "p");
}
