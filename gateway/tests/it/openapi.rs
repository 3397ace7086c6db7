//! The document that describes the interface.

use std::path::Path;

use axum::body::Body;
use serde_json::Value;

use crate::api::{Api, ID, request};

/// Run with `UPDATE_OPENAPI=1` to accept a changed interface.
#[test]
fn the_document_in_the_repository_is_current() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/openapi.json");
    let current = serde_json::to_string_pretty(&assay_gateway::openapi()).unwrap() + "\n";
    if std::env::var_os("UPDATE_OPENAPI").is_some() {
        std::fs::write(&file, &current).unwrap();
    }
    let committed = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(committed == current, "the interface has changed: see UPDATE_OPENAPI");
}

/// Method, path and description of every operation.
fn operations() -> Vec<(String, String, Value)> {
    let document = serde_json::to_value(assay_gateway::openapi()).unwrap();
    let paths = document["paths"].as_object().unwrap().clone();
    let operations = paths.into_iter().flat_map(|(path, item)| {
        let methods = item.as_object().unwrap().clone().into_iter();
        methods.map(move |(method, operation)| (method.to_uppercase(), path.clone(), operation))
    });
    operations.collect()
}

#[test]
fn every_operation_is_described() {
    for (method, path, operation) in operations() {
        let operation_says = |what: &str| operation[what].as_str().is_some_and(|t| !t.is_empty());
        for what in ["operationId", "summary", "description"] {
            assert!(operation_says(what), "{method} {path} has no {what}");
        }
        assert_eq!(operation["tags"].as_array().unwrap().len(), 1, "{method} {path}");
    }
}

#[tokio::test]
async fn every_operation_that_needs_a_token_is_closed_without_one() {
    let api = Api::alone();
    for (method, path, operation) in operations() {
        let path = path.split('/').map(|part| if part.starts_with('{') { ID } else { part });
        let path = path.collect::<Vec<_>>().join("/");
        let answer = api.send(request(&method, &path), Body::empty()).await;
        let is_open = operation["security"].is_array();
        assert_eq!(answer.status == 401, !is_open, "{method} {path}: {}", answer.status);
    }
}

#[tokio::test]
async fn the_pages_load_nothing_from_elsewhere() {
    let api = Api::alone();
    let document = api.send(request("GET", "/api/openapi.json"), Body::empty()).await;
    assert_eq!(document.ok()["info"]["title"], "Assay");
    for page in ["index.html", "swagger-initializer.js"] {
        let page = api.send(request("GET", &format!("/docs/{page}")), Body::empty()).await;
        assert_eq!(page.status, 200);
        let text = String::from_utf8(page.body).unwrap();
        assert!(!text.contains("://"), "{text}");
    }
}
