//! The AsyncAPI document, compared with the events on NATS.

mod document;
mod examples;
mod published;
mod tour;

use std::path::Path;

use jsonschema::{Draft, Validator};
use serde_json::Value;

/// JSON schema of AsyncAPI documents; see the README in its directory.
const ASYNCAPI: &str = include_str!("../asyncapi/3.0.0.json");

const HEADER: &str =
    "# Generated from the contracts: UPDATE_ASYNCAPI=1 cargo test -p assay asyncapi\n";

/// Returns a validator that also checks formats such as `uuid`.
fn validator(schema: &Value) -> Validator {
    let options = jsonschema::options().with_draft(Draft::Draft7).should_validate_formats(true);
    options.build(schema).unwrap()
}

/// Returns all violations of the schema.
fn problems(validator: &Validator, value: &Value) -> Vec<String> {
    let problem =
        |error: jsonschema::ValidationError<'_>| format!("{}: {error}", error.instance_path());
    validator.iter_errors(value).map(problem).collect()
}

/// Run with `UPDATE_ASYNCAPI=1` to update the committed document.
#[test]
fn the_document_in_the_repository_is_current() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/asyncapi.yaml");
    let current = document::asyncapi();
    if std::env::var_os("UPDATE_ASYNCAPI").is_some() {
        let text = HEADER.to_owned() + &serde_norway::to_string(&current).unwrap();
        std::fs::write(&file, text).unwrap();
    }
    let committed = std::fs::read_to_string(&file).unwrap_or_default();
    let committed: Value = serde_norway::from_str(&committed).unwrap();
    assert!(committed == current, "docs/asyncapi.yaml is outdated: run with UPDATE_ASYNCAPI=1");
}

#[test]
fn the_document_is_a_valid_asyncapi_document() {
    let asyncapi = serde_json::from_str(ASYNCAPI).unwrap();
    let found = problems(&validator(&asyncapi), &document::asyncapi());
    assert!(found.is_empty(), "{found:#?}");
    // The check can fail.
    let mut broken = document::asyncapi();
    broken["channels"]["notifications"]["adress"] = "x".into();
    assert!(!problems(&validator(&asyncapi), &broken).is_empty());
}

/// The examples are complete: they have every field that the schemas require, and no other.
#[test]
fn the_examples_are_messages_of_the_document() {
    let mut document = document::asyncapi();
    published::close(&mut document["components"]);
    let mut examples = 0;
    for (name, message) in document["components"]["messages"].as_object().unwrap() {
        for part in ["headers", "payload"] {
            let at = format!("#/components/messages/{name}/{part}");
            let schema =
                serde_json::json!({"allOf": [{"$ref": at}], "components": document["components"]});
            let schema = validator(&schema);
            for example in message["examples"].as_array().into_iter().flatten() {
                assert_eq!(problems(&schema, &example[part]), Vec::<String>::new(), "{name}");
                examples += 1;
            }
        }
    }
    assert_eq!(examples, 12);
}

/// The document contains everything that it refers to.
#[test]
fn every_reference_can_be_resolved() {
    let document = document::asyncapi();
    let mut pending = vec![&document];
    while let Some(value) = pending.pop() {
        match value {
            Value::Object(fields) => {
                if let Some(to) = fields.get("$ref").and_then(Value::as_str) {
                    assert!(document.pointer(&to[1..]).is_some(), "{to}");
                }
                pending.extend(fields.values());
            }
            Value::Array(items) => pending.extend(items),
            _ => {}
        }
    }
}
