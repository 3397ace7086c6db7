//! Parsing of JSON, with errors that name the field and the rule.

use std::{collections::BTreeMap, fmt::Write};

use serde::{
    Deserializer,
    de::{DeserializeOwned, IgnoredAny, value::MapDeserializer},
};
use serde_json::{error::Category, value::RawValue};
use serde_path_to_error::{Path, Segment};

use crate::problem::Problem;

/// Maximum depth of nested arrays and objects.
const DEPTH: usize = 64;

/// The fields of an object, not parsed yet.
pub(crate) type Fields<'a> = BTreeMap<String, &'a RawValue>;

/// Checks that a body is JSON and not nested too deeply, and returns its text.
pub(crate) fn check(body: &[u8]) -> Result<&str, Problem> {
    let json =
        std::str::from_utf8(body).map_err(|_| Problem::malformed("the body is not valid UTF-8"))?;
    serde_json::from_str::<IgnoredAny>(json).map_err(|error| malformed(&error))?;
    if depth(json) > DEPTH {
        return Err(Problem::malformed(format!(
            "the body must not be nested more than {DEPTH} deep"
        )));
    }
    Ok(json)
}

/// Parses JSON that [`check`] has accepted.
pub(crate) fn parse<'a, T: serde::Deserialize<'a>>(json: &'a str) -> Result<T, Problem> {
    deserialize(&mut serde_json::Deserializer::from_str(json))
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
        // The text is valid JSON. serde_json reports another value in place of the name of an enum
        // as a syntax error.
        let is_data = cause.classify() == Category::Data;
        let problem = if is_data { without_position(cause) } else { "must be a name".to_owned() };
        invalid(error.path(), &problem)
    })
}

fn malformed(error: &serde_json::Error) -> Problem {
    let (line, column) = (error.line(), error.column());
    Problem::malformed(format!("the body is not valid JSON: see line {line}, column {column}"))
}

/// Returns the depth of valid JSON.
fn depth(json: &str) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0);
    let (mut in_string, mut escaped) = (false, false);
    for byte in json.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => in_string = !in_string,
            _ if in_string => {}
            b'[' | b'{' => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b']' | b'}' => depth -= 1,
            _ => {}
        }
    }
    deepest
}

/// Translates an error of serde into the rule that a field breaks.
pub(crate) fn invalid(path: &Path, cause: &str) -> Problem {
    let mut field = pointer(path);
    if let Some(name) = cause.strip_prefix("missing field `") {
        let separator = if field.is_empty() { "" } else { "/" };
        let _ = write!(field, "{separator}{}", name.trim_end_matches('`'));
        return Problem::invalid(field, "is required");
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
