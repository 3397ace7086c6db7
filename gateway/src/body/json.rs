//! Parsing of JSON, with errors that name the field and the rule.

use std::{collections::BTreeMap, fmt::Write};

use assay_proto::{Changes, nearest, unknown_field};
use assay_weight::Weight;
use serde::{
    Deserializer,
    de::{DeserializeOwned, IgnoredAny, value::MapDeserializer},
};
use serde_json::{error::Category, value::RawValue};
use serde_path_to_error::{Path, Segment};

use crate::problem::Problem;

/// Maximum depth of nested arrays and objects.
const DEPTH: usize = 64;

/// Maximum number of unknown fields of an object that are compared with those of the input. Records have fewer.
const COMPARED: usize = 256;

/// The fields of an object, not parsed yet.
pub(crate) type Fields<'a> = BTreeMap<String, &'a RawValue>;

/// A body, which is weighed and not parsed yet.
pub(crate) struct JsonBody {
    bytes: Vec<u8>,
    weight: Weight,
}

impl JsonBody {
    /// Weighs a body. Fails if it has too many values for one request.
    pub(super) fn weigh(bytes: Vec<u8>) -> Result<Self, Problem> {
        let weight = Weight::of(&bytes);
        if weight.is_excessive() {
            return Err(Problem::too_many_values());
        }
        Ok(Self { bytes, weight })
    }

    /// Returns the size of the text, in bytes.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Returns the memory that it takes while it is parsed, in bytes.
    pub(super) fn size(&self) -> usize {
        self.bytes.len() + self.weight.bytes()
    }

    /// Checks that it is JSON and not nested too deeply, and returns its text.
    pub(crate) fn check(&self) -> Result<&str, Problem> {
        valid(&self.bytes, &self.weight)
    }

    /// Returns what was sent.
    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

/// Checks that a part of a body is JSON and not nested too deeply, and returns its text.
pub(super) fn check(json: &[u8]) -> Result<&str, Problem> {
    valid(json, &Weight::of(json))
}

fn valid<'j>(json: &'j [u8], weight: &Weight) -> Result<&'j str, Problem> {
    let json =
        std::str::from_utf8(json).map_err(|_| Problem::malformed("the body is not valid UTF-8"))?;
    serde_json::from_str::<IgnoredAny>(json).map_err(|error| malformed(&error))?;
    if weight.deepest() > DEPTH {
        return Err(Problem::malformed(format!(
            "the body must not be nested more than {DEPTH} deep"
        )));
    }
    Ok(json)
}

/// Parses JSON that was checked.
pub(crate) fn parse<'a, T: serde::Deserialize<'a>>(json: &'a str) -> Result<T, Problem> {
    deserialize(&mut serde_json::Deserializer::from_str(json))
}

/// Fails if one of the fields is probably a misspelt field of the input. Other fields that the input does
/// not have are ignored, since clients send whole records back.
pub(crate) fn check_names<T: Changes>(fields: &Fields<'_>) -> Result<(), Problem> {
    let is_misspelt = |name: &str| nearest(name, T::FIELDS.iter().copied()).is_some();
    let unknown = fields.keys().filter_map(|name| Some((name, T::check_name(name).err()?)));
    let misspelt = unknown.take(COMPARED).find(|(name, _)| is_misspelt(name));
    misspelt.map_or(Ok(()), |(name, advice)| Err(Problem::invalid(name, advice)))
}

/// Parses a message from its fields.
pub(crate) fn read_fields<T: DeserializeOwned>(fields: &Fields<'_>) -> Result<T, Problem> {
    let fields = fields.iter().map(|(name, value)| (name.as_str(), *value));
    deserialize(MapDeserializer::<_, serde_json::Error>::new(fields))
}

fn deserialize<'a, T: serde::Deserialize<'a>>(
    reader: impl Deserializer<'a, Error = serde_json::Error>,
) -> Result<T, Problem> {
    serde_path_to_error::deserialize(reader).map_err(|error| {
        let cause = error.inner();
        let problem = without_position(cause);
        let is_data = cause.classify() == Category::Data;
        invalid(error.path(), if is_data { &problem } else { rule(&problem) })
    })
}

/// Returns the rule that a value breaks which `serde_json` reports as a syntax error, although the text is valid JSON: a
/// value that memory cannot represent, or another one in place of the name of an enum.
fn rule(error: &str) -> &'static str {
    match error {
        "number out of range" => "must be a number in the range of 64-bit floating point",
        "lone leading surrogate in hex escape"
        | "unexpected end of hex escape"
        | "invalid unicode code point" => "must not contain half of a surrogate pair",
        _ => "must be a name",
    }
}

fn malformed(error: &serde_json::Error) -> Problem {
    let (line, column) = (error.line(), error.column());
    Problem::malformed(format!("the body is not valid JSON: see line {line}, column {column}"))
}

/// Translates an error of serde into the rule that a field breaks.
pub(crate) fn invalid(path: &Path, cause: &str) -> Problem {
    let mut field = pointer(path);
    if let Some(name) = cause.strip_prefix("missing field `") {
        let separator = if field.is_empty() { "" } else { "/" };
        let _ = write!(field, "{separator}{}", name.trim_end_matches('`'));
        return Problem::invalid(field, "is required");
    }
    if let Some((name, advice)) = unknown_field(cause) {
        let separator = if field.is_empty() { "" } else { "/" };
        if field.rsplit('/').next() != Some(name) {
            let _ = write!(field, "{separator}{name}");
        }
        return Problem::invalid(field, advice);
    }
    let problem = match cause.rsplit_once(", expected ") {
        Some((_, expected)) => format!("must be {}", json_type(expected)),
        None => cause.to_owned(),
    };
    Problem::invalid(field, problem)
}

/// Returns the JSON name of a type that serde expects.
fn json_type(expected: &str) -> &str {
    match expected {
        "i32" => "a 32-bit integer",
        "i64" => "a 64-bit integer",
        "f64" => "a number",
        "a sequence" => "an array",
        "a map" => "an object",
        _ if expected.starts_with("struct ") => "an object",
        _ => expected,
    }
}

fn without_position(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.rsplit_once(" at line ").map(|(text, _)| text.to_owned()).unwrap_or(text)
}

/// Converts a path to a JSON pointer (RFC 6901) without its leading slash.
fn pointer(path: &Path) -> String {
    let segments = path.iter().filter_map(|segment| match segment {
        Segment::Map { key } => Some(key.replace('~', "~0").replace('/', "~1")),
        Segment::Seq { index } => Some(index.to_string()),
        Segment::Enum { .. } | Segment::Unknown => None,
    });
    segments.collect::<Vec<_>>().join("/")
}
