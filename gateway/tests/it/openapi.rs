//! The OpenAPI document.

use std::path::Path;

use axum::body::Body;
use serde_json::Value;

use crate::api::{Api, ID, request};

/// Run with `UPDATE_OPENAPI=1` to update the committed document.
#[test]
fn the_document_in_the_repository_is_current() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/openapi.json");
    let current = serde_json::to_string_pretty(&assay_gateway::openapi()).unwrap() + "\n";
    if std::env::var_os("UPDATE_OPENAPI").is_some() {
        std::fs::write(&file, &current).unwrap();
    }
    let committed = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(committed == current, "docs/openapi.json is outdated: run with UPDATE_OPENAPI=1");
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
    let document = serde_json::to_value(assay_gateway::openapi()).unwrap();
    let tags: Vec<&Value> =
        document["tags"].as_array().unwrap().iter().map(|tag| &tag["name"]).collect();
    for (method, path, operation) in operations() {
        let operation_says = |what: &str| operation[what].as_str().is_some_and(|t| !t.is_empty());
        for what in ["operationId", "summary", "description"] {
            assert!(operation_says(what), "{method} {path} has no {what}");
        }
        let tag = operation["tags"].as_array().unwrap();
        assert_eq!(tag.len(), 1, "{method} {path} has several tags");
        assert!(tags.contains(&&tag[0]), "the tag {} is not described in src/openapi.rs", tag[0]);
    }
}

#[tokio::test]
async fn every_operation_that_needs_a_token_rejects_requests_without_one() {
    let api = Api::without_services();
    for (method, path, operation) in operations() {
        let path = path.split('/').map(|part| if part.starts_with('{') { ID } else { part });
        let path = path.collect::<Vec<_>>().join("/");
        let answer = api.send(request(&method, &path), Body::empty()).await;
        let is_open = operation["security"].is_array();
        assert_eq!(answer.status == 401, !is_open, "{method} {path}: {}", answer.status);
    }
}

#[tokio::test]
async fn the_pages_load_nothing_from_other_hosts() {
    let api = Api::without_services();
    let document = api.send(request("GET", "/api/openapi.json"), Body::empty()).await;
    assert_eq!(document.ok()["info"]["title"], "Assay");
    for page in ["index.html", "swagger-initializer.js"] {
        let page = api.send(request("GET", &format!("/docs/{page}")), Body::empty()).await;
        assert_eq!(page.status, 200);
        let policy = page.header("content-security-policy").to_owned();
        assert!(policy.starts_with("default-src 'none'; script-src 'self';"), "{policy}");
        assert!(policy.ends_with("frame-ancestors 'none'"), "{policy}");
        let text = String::from_utf8(page.body).unwrap();
        assert!(!text.contains("://"), "{text}");
    }
}

/// Many generators send a body in the first of several media types, or in none, and cannot express a choice
/// between schemas.
#[test]
fn a_body_has_one_media_type_and_no_choice() {
    for (method, path, operation) in operations() {
        let Some(content) = operation["requestBody"]["content"].as_object() else { continue };
        assert_eq!(content.len(), 1, "{method} {path}");
        for (media_type, content) in content {
            assert!(content["schema"]["oneOf"].is_null(), "{method} {path}");
            let known =
                ["application/json", "multipart/form-data", "application/offset+octet-stream"];
            let is_known = known.contains(&media_type.as_str());
            assert!(is_known, "{method} {path}: {media_type}");
        }
    }
}

/// A client that takes a file for a text changes its bytes.
#[test]
fn files_are_binary() {
    for (method, path, operation) in operations() {
        for response in operation["responses"].as_object().unwrap().values() {
            for (media_type, content) in response["content"].as_object().into_iter().flatten() {
                let is_text = media_type.starts_with("text/");
                if content["schema"]["type"] == "string" && !is_text {
                    let format = &content["schema"]["format"];
                    assert_eq!(format, "binary", "{method} {path}: {media_type}");
                }
            }
        }
    }
}

/// Each record that has a permanent URL has a short path, and so has everything below an execution.
#[test]
fn records_have_short_paths() {
    let all = operations();
    let has = |method: &str, path: &str| all.iter().any(|(m, p, _)| m == method && p == path);
    for (method, path, operation) in &all {
        let long = "/api/projects/{projectId}/executions/{executionId}";
        if let Some(rest) = path.strip_prefix(long) {
            let short = format!("/api/executions/{{executionId}}{rest}");
            assert!(has(method, &short), "{method} {short}");
        }
        let names = operation["parameters"].as_array().unwrap().iter();
        let in_path = names.filter(|parameter| parameter["in"] == "path").count();
        assert_eq!(in_path, path.matches('{').count(), "{method} {path}");
    }
    for short in ["testreports/{testReportId}", "testcases/{testCaseId}", "testsets/{testSetId}"] {
        assert!(has("GET", &format!("/api/{short}")), "{short}");
    }
}

fn schemas() -> serde_json::Map<String, Value> {
    let document = serde_json::to_value(assay_gateway::openapi()).unwrap();
    document["components"]["schemas"].as_object().unwrap().clone()
}

fn may_be_null(schema: &Value) -> bool {
    let types = schema["type"].as_array().into_iter().flatten();
    let choices = schema["oneOf"].as_array().into_iter().flatten().map(|choice| &choice["type"]);
    types.chain(choices).any(|name| name == "null")
}

/// Every field of a record is required in answers, and only nullable fields accept `null`.
#[test]
fn schemas_of_a_record_and_its_input_agree() {
    let schemas = schemas();
    for (name, schema) in &schemas {
        let Some(fields) = schema["properties"].as_object() else { continue };
        if let Some(noun) = name.strip_suffix("Changes") {
            let Some(record) = schemas.get(noun) else { continue };
            for (field, schema) in fields {
                let shown = &record["properties"][field];
                let clears = field != "DataVersion" && may_be_null(schema);
                assert!(!clears || shown.is_null() || may_be_null(shown), "{name}.{field}");
            }
        } else if !name.ends_with("Input") && name != "Problem" {
            let required = schema["required"].as_array().map_or(0, Vec::len);
            assert_eq!(required, fields.len(), "{name} has fields that are not required");
        }
    }
    assert!(!may_be_null(&schemas["TestPlanChanges"]["properties"]["Status"]));
}

/// An update takes the version that it is based on, and has an error for a stale version.
#[test]
fn every_update_supports_conditional_requests() {
    let mut updates = 0;
    for (method, path, operation) in operations() {
        let content = &operation["requestBody"]["content"]["application/json"];
        let form = content["schema"]["$ref"].as_str().unwrap_or_default();
        if !form.ends_with("Changes") {
            continue;
        }
        updates += 1;
        let parameters = operation["parameters"].as_array().unwrap();
        let conditional = parameters.iter().any(|parameter| parameter["name"] == "If-Match");
        assert!(conditional, "{method} {path}");
        for status in ["409", "412", "413", "415", "422"] {
            let response = &operation["responses"][status];
            assert!(response.is_object(), "{method} {path} has no {status}");
        }
    }
    for update in ["update_execution", "get_test_set"] {
        let known = |(_, _, operation): &(_, _, Value)| operation["operationId"] == update;
        let (_, _, operation) = operations().into_iter().find(known).unwrap();
        let schema = &operation["requestBody"]["content"]["application/json"]["schema"]["$ref"];
        assert!(schema.as_str().is_some_and(|form| form.ends_with("Changes")), "{update}");
    }
    assert!(updates > 10, "{updates}");
    let login = |(_, _, operation): &(_, _, Value)| operation["operationId"] == "login";
    let (_, _, login) = operations().into_iter().find(login).unwrap();
    assert!(login["responses"]["403"].is_object());
}
