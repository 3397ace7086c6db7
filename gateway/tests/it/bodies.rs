//! Bodies of requests and their validation.

use std::convert::Infallible;

use axum::body::Body;
use http::StatusCode;
use serde_json::{Value, json};

use crate::api::{Api, ID};

const CASES: &str = "/api/projects/p/testsets/s/testcases";

#[tokio::test]
async fn an_unreadable_body_is_malformed() {
    let api = Api::start().await;
    let deep = format!(r#"{{"Name":"a","Deep":{}{}}}"#, "[".repeat(64), "]".repeat(64));
    for wrong in ["", " ", "{", r#"{"Name":1"#, r#"{"Name":"a"} x"#, "{'Name':1}", &deep] {
        let answer = api.json("POST", "/api/projects", wrong).await;
        answer.problem(400, "malformed");
    }
    let not_text = api.request("POST", "/api/projects");
    let not_text = api.send(not_text, Body::from(&b"{\"Name\":\"\xff\"}"[..])).await;
    not_text.problem(400, "malformed");
}

#[tokio::test]
async fn nesting_is_limited_to_64_levels() {
    let api = Api::start().await;
    let deep = format!(r#"{{"Name":"[[\"","OverallResult":{}{}}}"#, "[".repeat(63), "]".repeat(63));
    assert_eq!(api.json("POST", "/api/projects", deep).await.status, StatusCode::CREATED);
}

#[tokio::test]
async fn a_field_of_the_wrong_type_is_named() {
    let api = Api::start().await;
    let plans = "/api/projects/p/testcases/c/testplans";
    for (path, body, field, detail) in [
        ("/api/projects", json!([]), "", "must be an object"),
        ("/api/projects", json!({"Name": 1}), "/Name", "must be a string"),
        ("/api/projects", json!({"Archived": "no"}), "/Archived", "must be a boolean"),
        (plans, json!({"Instances": 1.5}), "/Instances", "must be a 32-bit integer"),
        (plans, json!({"Instances": 1e12}), "/Instances", "must be a 32-bit integer"),
        (plans, json!({"Instances": 2.5}), "/Instances", "must be a 32-bit integer"),
        (
            plans,
            json!({"TestType": "Nope"}),
            "/TestType",
            "must be one of `Default`, `Performance`, `Stability`",
        ),
        (CASES, json!("x"), "", "must be an object or an array of objects"),
        (CASES, json!([{"Id": ID}, {"Id": 2}]), "/1/Id", "must be a string"),
        (CASES, json!([{"Id": ID}, {}]), "/1/Id", "is required"),
    ] {
        let answer = api.json("POST", path, &body).await;
        let problem = answer.problem(422, "invalid");
        assert_eq!(problem["errors"], json!([{"pointer": field, "detail": detail}]), "{body}");
    }
}

#[tokio::test]
async fn a_value_that_cannot_be_represented_is_named() {
    let api = Api::start().await;
    let plans = "/api/projects/p/testcases/c/testplans";
    let number = "must be a number in the range of 64-bit floating point";
    let text = "must not contain half of a surrogate pair";
    for (path, body, field, detail) in [
        (plans, r#"{"MinimumDurationInMin":1e999}"#, "/MinimumDurationInMin", number),
        ("/api/projects", r#"{"Name":"\ud800"}"#, "/Name", text),
        ("/api/projects", r#"{"Name":"\ud800\u0041"}"#, "/Name", text),
        ("/api/projects", r#"{"Name":"\udc00"}"#, "/Name", text),
    ] {
        let answer = api.json("POST", path, body).await;
        let problem = answer.problem(422, "invalid");
        assert_eq!(problem["errors"], json!([{"pointer": field, "detail": detail}]), "{body}");
    }
}

#[tokio::test]
async fn a_misspelt_field_is_refused_and_the_nearest_one_suggested() {
    let api = Api::start().await;
    let (projects, subjects) = ("/api/projects", "/api/projects/p/subjects");
    let subject = |variable: Value| {
        json!({"Identifier": "1", "Name": "a", "SubjectType": "Webpage", "Uri": "https://a.example/",
            "Variables": [variable]})
    };
    for (method, path, body, field, advice) in [
        ("POST", projects, json!({"Name": "a", "Descripton": ""}), "/Descripton", "`Description`"),
        ("PUT", "/api/projects/p", json!({"name": "a"}), "/name", "`Name`"),
        ("POST", subjects, subject(json!({"Nmae": "a"})), "/Variables/0/Nmae", "`Name`"),
    ] {
        let answer = api.json(method, path, &body).await;
        let problem = answer.problem(422, "invalid");
        assert_eq!(problem["errors"][0]["pointer"], field, "{body}");
        let detail = problem["errors"][0]["detail"].as_str().unwrap();
        assert!(detail.contains(advice), "{body}: {detail}");
    }
    // A client may send a record as it was read, and fields of its own.
    let record = json!({"Name": "a", "Id": "x", "CustomerId": "y", "OverallResult": null, "Archived": true,
        "Colour": "red"});
    let created = api.json("POST", projects, &record).await;
    assert_eq!(created.status, StatusCode::CREATED);
    api.json("PUT", "/api/projects/p", &record).await.ok();
}

#[tokio::test]
async fn null_in_a_new_record_means_absent() {
    let api = Api::start().await;
    let body = json!({"Name": "a", "Description": null, "Archived": null, "RetentionInDays": null});
    let answer = api.json("POST", "/api/projects", body).await;
    assert_eq!(answer.status, StatusCode::CREATED);
}

#[tokio::test]
async fn a_body_must_be_unencoded_json_within_the_size_limit() {
    let api = Api::start().await;
    let post = || api.request("POST", "/api/projects");
    let body = || Body::from(r#"{"Name":"a"}"#);
    for media_type in ["application/json; charset=utf-8", "application/vnd.assay+json"] {
        let answer = api.send(post().header("Content-Type", media_type), body()).await;
        assert_eq!(answer.status, StatusCode::CREATED);
    }
    let form = post().header("Content-Type", "application/x-www-form-urlencoded");
    api.send(form, body()).await.problem(415, "unsupported_media_type");
    let encoded = post().header("Content-Encoding", "gzip");
    api.send(encoded, body()).await.problem(415, "unsupported_media_type");

    let fill = |size: usize| format!(r#"{{"Name":"{}"}}"#, "a".repeat(size - 11));
    let most = api.json("POST", "/api/projects", fill(1 << 20)).await;
    assert_eq!(most.status, StatusCode::CREATED);
    let over = api.json("POST", "/api/projects", fill((1 << 20) + 1)).await;
    over.problem(413, "too_large");
    let chunks = fill((1 << 20) + 1).into_bytes();
    let chunks = chunks.chunks(1 << 16).map(|chunk| Ok::<_, Infallible>(chunk.to_vec()));
    let stream = Body::from_stream(futures::stream::iter(chunks.collect::<Vec<_>>()));
    api.send(post(), stream).await.problem(413, "too_large");
}

#[tokio::test]
async fn test_cases_are_given_as_an_object_or_an_array() {
    let api = Api::start().await;
    for (body, included) in [
        (json!({"Id": "a", "Name": "ignored"}), "a"),
        (json!([{"Id": "a"}, {"Id": "b"}]), "a, b"),
        (json!([]), ""),
    ] {
        for method in ["POST", "PUT"] {
            assert_eq!(api.json(method, CASES, &body).await.ok()["Name"], included);
        }
    }
    let excluded = api.json("DELETE", CASES, json!([{"Id": ID}])).await;
    assert_eq!(excluded.status, StatusCode::NO_CONTENT);
    assert!(excluded.body.is_empty());
}
