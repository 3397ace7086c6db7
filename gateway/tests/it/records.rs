//! Single records, their entity tags and locations.

use axum::body::Body;
use http::StatusCode;
use serde_json::json;

use crate::api::{Answer, Api};

/// The version in an entity tag.
fn version(answer: &Answer) -> &str {
    let tag = answer.header("etag");
    tag.strip_prefix('"').and_then(|tag| tag.split_once('.')).expect("a tag with a version").0
}

#[tokio::test]
async fn a_record_of_several_messages_is_one_object() {
    let api = Api::start().await;
    let set = api.get("/api/projects/p/testsets/s").await;
    let json = set.ok();
    let cases: Vec<_> = json["TestCases"].as_array().unwrap().iter().map(|c| &c["Name"]).collect();
    assert_eq!(cases, ["a", "b", "c", "d"]);
    assert_eq!((&json["Id"], &json["Name"]), (&json!("s"), &json!("p")));
    assert_eq!(version(&set), "7");

    assert_eq!(api.get("/api/projects/p/testsets/empty").await.ok()["TestCases"], json!([]));
    api.get("/api/projects/p/testsets/gone").await.problem(404, "not_found");
    assert!(!api.get("/api/projects/p/testsets/breaks%20off").await.is_complete);
}

#[tokio::test]
async fn a_permanent_url_needs_no_project() {
    let api = Api::start().await;
    assert_eq!(api.get("/api/projects/0/testsets/s").await.ok()["Name"], "permanent");
}

#[tokio::test]
async fn a_new_record_has_a_location() {
    let api = Api::start().await;
    let project = api.json("POST", "/api/projects", json!({"Name": "a"})).await;
    assert_eq!(project.status, StatusCode::CREATED);
    assert_eq!(project.header("location"), "/api/projects/new");
    assert_eq!(version(&project), "1");
    let set = api.json("POST", "/api/projects/p/testsets", json!({"Name": "a"})).await;
    assert_eq!(set.status, StatusCode::CREATED);
    assert_eq!(set.header("location"), "/api/projects/p/testsets/new");
}

#[tokio::test]
async fn an_unchanged_record_is_not_sent_again() {
    let api = Api::start().await;
    for path in ["/api/projects/p", "/api/projects/p/testsets/s"] {
        let tag = api.get(path).await.header("etag").to_owned();
        for known in [tag.clone(), format!("\"x\", W/{tag}"), "*".to_owned()] {
            let request = api.request("GET", path).header("If-None-Match", known);
            let answer = api.send(request, Body::empty()).await;
            assert_eq!(answer.status, StatusCode::NOT_MODIFIED);
            assert_eq!(answer.header("etag"), tag);
            assert!(answer.body.is_empty());
        }
        let request = api.request("GET", path).header("If-None-Match", "\"x\"");
        api.send(request, Body::empty()).await.ok();
    }
}

#[tokio::test]
async fn a_different_body_of_the_same_version_is_sent() {
    let api = Api::start().await;
    // Both records of a kind have the same version.
    for kind in ["/api/projects/p/testsets/", "/api/projects/"] {
        let [one, other] = ["one", "other"].map(|name| format!("{kind}{name}"));
        let tag = api.get(&one).await.header("etag").to_owned();
        let request = api.request("GET", &other).header("If-None-Match", &tag);
        let answer = api.send(request, Body::empty()).await;
        answer.ok();
        assert_ne!(answer.header("etag"), tag);
    }
}

#[tokio::test]
async fn a_record_too_large_for_a_digest_is_always_sent() {
    let api = Api::start().await;
    let path = "/api/projects/p/testsets/long";
    let set = api.get(path).await;
    assert_eq!(set.ok()["TestCases"].as_array().unwrap().len(), 8);
    assert_eq!(version(&set), "7");
    let known = api.request("GET", path).header("If-None-Match", set.header("etag"));
    api.send(known, Body::empty()).await.ok();
    // Its tag can still be the condition of an update.
    let change = api.request("PUT", path).header("If-Match", set.header("etag"));
    let changed = api.send(change, Body::from("{}")).await;
    assert_eq!(changed.ok()["DataVersion"], "7");
}
