//! Problems: the answers to failed requests.

use axum::body::Body;
use http::StatusCode;

use crate::api::{Api, request};

#[tokio::test]
async fn unknown_paths_and_methods_are_problems() {
    let api = Api::without_services();
    let unknown = api.get("/api/nothing").await.problem(404, "not_found");
    assert_eq!(unknown["instance"], "/api/nothing");
    assert_eq!(unknown["title"], "Not found");

    let method = api.json("PATCH", "/api/projects", "{}").await;
    method.problem(405, "method_not_allowed");
    assert_eq!(method.header("allow"), "GET,HEAD,POST");
}

#[tokio::test]
async fn all_invalid_tokens_get_the_same_answer() {
    let api = Api::start().await;
    let none = api.send(request("GET", "/api/projects"), Body::empty()).await;
    let expected = none.problem(401, "unauthenticated");
    assert_eq!(none.header("www-authenticate"), "Bearer");
    let (_, forged) = (api.token(), Api::without_services().token().to_owned());
    for (name, value) in [
        ("Authentication", ""),
        ("Authentication", "Bearer"),
        ("Authentication", "Bearer nonsense"),
        ("Authentication", &format!("Basic {}", api.token())),
        ("Authentication", &forged),
        // The `Authorization` header requires the scheme.
        ("Authorization", api.token()),
    ] {
        let answer = api.send(request("GET", "/api/projects").header(name, value), Body::empty());
        assert_eq!(answer.await.problem(401, "unauthenticated"), expected, "{name}: {value}");
    }
}

#[tokio::test]
async fn a_token_is_accepted_in_either_header() {
    let api = Api::start().await;
    for (name, value) in [
        ("Authentication", api.token().to_owned()),
        ("authentication", format!("bearer {}", api.token())),
        ("Authorization", format!("Bearer {}", api.token())),
    ] {
        let answer = api.send(request("GET", "/api/projects").header(name, value), Body::empty());
        assert_eq!(answer.await.status, StatusCode::OK);
    }
}

#[tokio::test]
async fn errors_of_services_become_problems() {
    let api = Api::start().await;
    for (id, status, code) in [
        ("gone", 404, "not_found"),
        ("bug", 500, "internal"),
        ("odd", 500, "internal"),
        ("slow", 504, "timeout"),
        ("busy", 429, "busy"),
        ("down", 503, "unavailable"),
    ] {
        let answer = api.get(&format!("/api/projects/{id}")).await;
        answer.problem(status, code);
        assert!(!String::from_utf8_lossy(&answer.body).contains("canary"), "{answer:?}");
    }
    assert_eq!(api.get("/api/projects/busy").await.header("retry-after"), "3");
    assert_eq!(api.get("/api/projects/%ff").await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn an_unreachable_service_is_unavailable() {
    let answer = Api::without_services().get("/api/projects").await;
    answer.problem(503, "unavailable");
    assert_eq!(answer.header("retry-after"), "1");
}

#[tokio::test]
async fn every_answer_is_uncached_and_has_a_request_id() {
    let api = Api::without_services();
    let answer = api.get("/livez").await;
    assert_eq!(answer.status, StatusCode::OK);
    assert_eq!(answer.header("cache-control"), "no-store");
    assert_eq!(answer.header("x-content-type-options"), "nosniff");
    assert!(answer.headers.get_all("vary").iter().any(|v| v == "authentication, authorization"));
    assert!(!answer.header("x-request-id").is_empty());

    let named = request("GET", "/nothing").header("X-Request-Id", "build-17.retry:2");
    assert_eq!(api.send(named, Body::empty()).await.header("x-request-id"), "build-17.retry:2");
    let odd = request("GET", "/nothing").header("X-Request-Id", "<script>");
    assert_ne!(api.send(odd, Body::empty()).await.header("x-request-id"), "<script>");
}

#[tokio::test]
async fn large_answers_are_compressed_on_request() {
    let api = Api::start().await;
    for encoding in ["gzip", "br", "zstd"] {
        let request = |path| api.request("GET", path).header("Accept-Encoding", encoding);
        let large = api.send(request("/api/projects/large"), Body::empty()).await;
        assert_eq!(large.header("content-encoding"), encoding);
        let small = api.send(request("/api/projects?q=nothing"), Body::empty()).await;
        assert_eq!(small.status, StatusCode::OK);
        let problem = api.send(request("/api/projects/gone"), Body::empty()).await;
        problem.problem(404, "not_found");
    }
    let nothing = api.request("GET", "/api/projects").header("Accept-Encoding", "*;q=0");
    api.send(nothing, Body::empty()).await.problem(406, "not_acceptable");
}

#[tokio::test]
async fn a_permanent_url_allows_only_reads() {
    let api = Api::start().await;
    api.get("/api/projects/0/testsets/s").await.ok();
    for method in ["POST", "PUT", "DELETE", "PATCH"] {
        for path in ["/api/projects/0/testsets/s", "/api/projects/0/testcases/c"] {
            let answer = api.json(method, path, "{}").await;
            answer.problem(404, "not_found");
            assert_eq!(answer.header("allow"), "GET,HEAD", "{method} {path}");
        }
    }
}
