//! Examples of what is sent and answered, put together from what the contracts say that fields may
//! hold. A record has the same id wherever it is named.

mod shown;

use assay_proto::EXAMPLES;
use serde::Serialize;
use serde_json::{Map, Value, json};
use utoipa::openapi::OpenApi;
use uuid::Builder;

pub(super) use self::shown::show;
use super::forms::{Said, record_of};

/// When all that happened which has no other time.
const MOMENT: &str = "2026-03-02T09:30:00.000000Z";

/// When all records were made, in milliseconds since 1970.
const MADE: u64 = 1_772_443_800_000;

/// Who refers to any kind of record, so that it depends on the place which one is meant.
const REFERENCES: [&str; 2] = ["Reference", "FavoriteInput"];

/// What fields may hold.
struct Examples {
    schemas: Value,
    paths: Vec<String>,
    given: Said,
}

impl Examples {
    fn of(document: &OpenApi) -> Self {
        let mut given = Said::default();
        for (message, field, example) in EXAMPLES {
            given.add(message, field, example);
        }
        Self {
            schemas: document.components.as_ref().map(|c| to_json(&c.schemas)).unwrap_or_default(),
            paths: document.paths.paths.keys().cloned().collect(),
            given,
        }
    }

    /// What may be where there is a value of this shape.
    fn value(&self, schema: &Value, place: &str) -> Option<Value> {
        if let Some(name) = named(schema) {
            let choices = &self.schemas[name];
            let is_record = is(choices, "object");
            return if is_record {
                Some(self.record(name, place).into())
            } else {
                self.value(choices, place)
            };
        }
        let choices = schema["oneOf"].as_array().into_iter().flatten();
        if let Some(choice) = choices.into_iter().find(|choice| choice["type"] != "null") {
            return self.value(choice, place);
        }
        match schema["format"].as_str() {
            Some("uuid") => return Some(self.id(place).into()),
            Some("date-time") => return Some(MOMENT.into()),
            _ => {}
        }
        match schema["enum"].get(0) {
            Some(first) => Some(first.clone()),
            None if is(schema, "array") => Some(json!([self.value(&schema["items"], place)?])),
            None if is(schema, "boolean") => Some(false.into()),
            // An id that may be empty.
            None if is(schema, "string") && place.ends_with("Id") => Some(self.id(place).into()),
            None => None,
        }
    }

    /// A record with all its fields; of a message that clients write, with those that matter.
    fn record(&self, name: &str, place: &str) -> Map<String, Value> {
        let is_sent = name.ends_with("Input") || name.ends_with("Changes");
        let noun = if REFERENCES.contains(&name) { place } else { record_of(name) };
        let fields = self.schemas[name]["properties"].as_object().into_iter().flatten();
        let example = |(field, schema): (&String, &Value)| {
            let place = if ["Id", "ForeignId"].contains(&field.as_str()) { noun } else { field };
            let example = match self.given.of(name, field) {
                Some("") if is_sent => None,
                Some("") if !is(schema, "null") => Some("".into()),
                Some("") => Some(Value::Null),
                Some(text) => Some(read(text, schema)),
                None if is_sent && is_plain(schema) => None,
                None if is_sent => self.value(schema, place),
                None => Some(self.value(schema, place).unwrap_or_default()),
            };
            Some((field.clone(), example?))
        };
        fields.filter_map(example).collect()
    }

    /// The entity tag of a record: its version and the fingerprint of a body.
    fn tag(&self) -> Option<Value> {
        let version = self.given.of_any("DataVersion")?;
        Some(format!("\"{version}.5f0a9c31d2e4b687\"").into())
    }

    /// The path with the ids of the records that it names.
    fn path(&self, path: &str) -> String {
        let segments = path.split('/').map(|segment| {
            match segment.strip_prefix('{').and_then(|name| name.strip_suffix('}')) {
                Some(name) => self.id(name),
                None => segment.to_owned(),
            }
        });
        segments.collect::<Vec<_>>().join("/")
    }

    /// Where the record is that a message shows, made by a request to that path: below it, if there
    /// is such a path.
    fn location(&self, message: &str, made_at: &str) -> Option<String> {
        let place = format!("/{{{}Id}}", record_of(message)).to_lowercase();
        let paths = self.paths.iter().filter(|path| path.to_lowercase().ends_with(&place));
        let own = paths.filter(|path| !path.contains("/0/") && !path.contains("/favorites/"));
        let below =
            |path: &String| path.strip_prefix(made_at).is_some_and(|rest| rest.starts_with('/'));
        own.max_by_key(|path| (below(path), path.len())).map(|path| self.path(path))
    }

    /// The id of the record that something is called after: `SelectedSubjectId` is a subject's.
    fn id(&self, called: &str) -> String {
        let called = called.to_lowercase();
        let noun = called.trim_end_matches("id").trim_end_matches('s');
        let nouns = self.schemas.as_object().into_iter().flatten();
        let nouns = nouns.map(|(name, _)| name.to_lowercase());
        let known = nouns.filter(|name| noun.ends_with(name.as_str())).max_by_key(String::len);
        id_of(match noun {
            // The software that another one is built upon, and two more words for software.
            "basesubject" => noun,
            "softwareversion" | "containedsubject" => "subject",
            _ => known.as_deref().unwrap_or(noun),
        })
    }
}

/// The id of the one record of its kind that there is in examples.
fn id_of(noun: &str) -> String {
    // FNV-1a: any function of the noun will do that is the same for ever.
    let hash = noun.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let mut random = [0; 10];
    random[..8].copy_from_slice(&hash.to_be_bytes());
    random[8..].copy_from_slice(&hash.to_le_bytes()[3..5]);
    Builder::from_unix_timestamp_millis(MADE, &random).into_uuid().to_string()
}

/// The name of the schema that is referred to.
fn named(schema: &Value) -> Option<&str> {
    schema["$ref"].as_str()?.rsplit('/').next()
}

fn is(schema: &Value, kind: &str) -> bool {
    let kinds = &schema["type"];
    kinds == kind || kinds.as_array().is_some_and(|kinds| kinds.iter().any(|k| k == kind))
}

/// Whether a value is there anyway if a client says nothing.
fn is_plain(schema: &Value) -> bool {
    let has_own_fields = schema["oneOf"].is_array() || schema["$ref"].is_string();
    !has_own_fields && !is(schema, "array") && schema["format"] != "uuid"
}

/// Text stands for itself, all else is JSON.
fn read(text: &str, schema: &Value) -> Value {
    let is_text = named(schema).is_some() || is(schema, "string") || schema["oneOf"].is_array();
    let json = || serde_json::from_str(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    if is_text { text.into() } else { json() }
}

fn to_json(part: &impl Serialize) -> Value {
    serde_json::to_value(part).unwrap_or_default()
}
