//! Examples of requests and responses, composed of the examples of fields in the contracts. All
//! references to a record use the same id.

pub(super) mod attach;

use assay_proto::EXAMPLES;
use serde::Serialize;
use serde_json::{Map, Value, json};
use utoipa::openapi::OpenApi;
use uuid::Builder;

use super::texts::{Texts, record_of};

/// Time of everything that has no example of its own.
const TIME: &str = "2026-03-02T09:30:00.000000Z";

/// Time at which all records were created, in milliseconds since 1970; it is part of their ids.
const CREATED: u64 = 1_772_443_800_000;

/// Messages that refer to a record of any kind; the kind follows from the name of the field.
const REFERENCES: [&str; 2] = ["Reference", "FavoriteInput"];

/// Examples of fields, and the schemas they belong to.
struct Examples {
    schemas: Value,
    paths: Vec<String>,
    given: Texts,
}

impl Examples {
    fn of(document: &OpenApi) -> Self {
        let mut given = Texts::default();
        for (message, field, example) in EXAMPLES {
            given.add(message, field, example);
        }
        Self {
            schemas: document.components.as_ref().map(|c| to_json(&c.schemas)).unwrap_or_default(),
            paths: document.paths.paths.keys().cloned().collect(),
            given,
        }
    }

    /// Returns an example of a schema that is used under this name.
    fn value(&self, schema: &Value, name: &str) -> Option<Value> {
        if let Some(message) = referred(schema) {
            let choices = &self.schemas[message];
            let is_record = is(choices, "object");
            return if is_record {
                Some(self.record(message, name).into())
            } else {
                self.value(choices, name)
            };
        }
        let choices = schema["oneOf"].as_array().into_iter().flatten();
        if let Some(choice) = choices.into_iter().find(|choice| choice["type"] != "null") {
            return self.value(choice, name);
        }
        match schema["format"].as_str() {
            Some("uuid") => return Some(self.id(name).into()),
            Some("date-time") => return Some(TIME.into()),
            _ => {}
        }
        match schema["enum"].get(0) {
            Some(first) => Some(first.clone()),
            None if is(schema, "array") => Some(json!([self.value(&schema["items"], name)?])),
            None if is(schema, "boolean") => Some(false.into()),
            // An id that may be empty.
            None if is(schema, "string") && name.ends_with("Id") => Some(self.id(name).into()),
            None => None,
        }
    }

    /// Returns an example of a message: all its fields, or of an input those that clients usually
    /// send.
    fn record(&self, message: &str, used_as: &str) -> Map<String, Value> {
        let is_input = message.ends_with("Input") || message.ends_with("Changes");
        let noun = if REFERENCES.contains(&message) { used_as } else { record_of(message) };
        let fields = self.schemas[message]["properties"].as_object().into_iter().flatten();
        let example = |(field, schema): (&String, &Value)| {
            let used_as = if ["Id", "ForeignId"].contains(&field.as_str()) { noun } else { field };
            let given = self.given.of(message, field);
            let given = given.filter(|text| text.is_empty() || !self.has_records(schema));
            let example = match given {
                Some("") if is_input => None,
                Some("") if !may_be_null(schema) => Some("".into()),
                Some("") => Some(Value::Null),
                Some(text) => Some(parse(text, schema)),
                None if is_input && is_plain(schema) => None,
                None if is_input => self.value(schema, used_as),
                None => Some(self.value(schema, used_as).unwrap_or_default()),
            };
            Some((field.clone(), example?))
        };
        fields.filter_map(example).collect()
    }

    /// Whether a field has a record or several, whose fields have examples of their own.
    fn has_records(&self, schema: &Value) -> bool {
        let record = if is(schema, "array") { &schema["items"] } else { schema };
        referred(record).is_some_and(|message| is(&self.schemas[message], "object"))
    }

    /// Returns the entity tag of a record: its version and the fingerprint of a body.
    fn tag(&self) -> Option<Value> {
        let version = self.given.of_any("DataVersion")?;
        Some(format!("\"{version}.5f0a9c31d2e4b687\"").into())
    }

    /// Fills in the ids of a path template.
    fn path(&self, path: &str) -> String {
        let segments = path.split('/').map(|segment| {
            match segment.strip_prefix('{').and_then(|name| name.strip_suffix('}')) {
                Some(name) => self.id(name),
                None => segment.to_owned(),
            }
        });
        segments.collect::<Vec<_>>().join("/")
    }

    /// Returns the path of a record that a request to `collection` created: one below the
    /// collection if there is one.
    fn location(&self, message: &str, collection: &str) -> Option<String> {
        let segment = format!("/{{{}Id}}", record_of(message)).to_lowercase();
        let paths = self.paths.iter().filter(|path| path.to_lowercase().ends_with(&segment));
        let own = paths.filter(|path| !path.contains("/0/") && !path.contains("/favorites/"));
        let below =
            |path: &String| path.strip_prefix(collection).is_some_and(|rest| rest.starts_with('/'));
        own.max_by_key(|path| (below(path), path.len())).map(|path| self.path(path))
    }

    /// Returns the id of the record that a field is named after: of a subject for
    /// `SelectedSubjectId`.
    fn id(&self, name: &str) -> String {
        let name = name.to_lowercase();
        let noun = name.trim_end_matches("id").trim_end_matches('s');
        let nouns = self.schemas.as_object().into_iter().flatten();
        let nouns = nouns.map(|(name, _)| name.to_lowercase());
        let known = nouns.filter(|known| noun.ends_with(known.as_str())).max_by_key(String::len);
        id_of(match noun {
            // A base subject is another subject; the two others are subjects under another name.
            "basesubject" => noun,
            "softwareversion" | "containedsubject" => "subject",
            _ => known.as_deref().unwrap_or(noun),
        })
    }
}

/// Returns the id of the only record of its kind in examples.
fn id_of(noun: &str) -> String {
    // FNV-1a; any stable function of the noun would do.
    let hash = noun.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let mut random = [0; 10];
    random[..8].copy_from_slice(&hash.to_be_bytes());
    random[8..].copy_from_slice(&hash.to_le_bytes()[3..5]);
    Builder::from_unix_timestamp_millis(CREATED, &random).into_uuid().to_string()
}

/// Returns the name of the schema that a schema refers to.
fn referred(schema: &Value) -> Option<&str> {
    schema["$ref"].as_str()?.rsplit('/').next()
}

fn is(schema: &Value, kind: &str) -> bool {
    let kinds = &schema["type"];
    kinds == kind || kinds.as_array().is_some_and(|kinds| kinds.iter().any(|k| k == kind))
}

/// Whether a value may be null, also instead of a record.
fn may_be_null(schema: &Value) -> bool {
    let choices = schema["oneOf"].as_array().into_iter().flatten();
    is(schema, "null") || choices.into_iter().any(|choice| choice["type"] == "null")
}

/// Whether a field usually keeps its default value when a client sends an input.
fn is_plain(schema: &Value) -> bool {
    let has_own_fields = schema["oneOf"].is_array() || schema["$ref"].is_string();
    !has_own_fields && !is(schema, "array") && schema["format"] != "uuid"
}

/// Parses an example: of a string field as text, of other fields as JSON.
fn parse(text: &str, schema: &Value) -> Value {
    let is_text = referred(schema).is_some() || is(schema, "string") || schema["oneOf"].is_array();
    let json = || serde_json::from_str(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    if is_text { text.into() } else { json() }
}

fn to_json(part: &impl Serialize) -> Value {
    serde_json::to_value(part).unwrap_or_default()
}
