//! A filter for large JSON bodies that keeps only the fields an operation accepts, while the body
//! arrives. Clients send whole records back, and a test set with all fields of its test cases.

mod scanner;

use std::mem;

use serde::Deserialize;
use serde_json::value::RawValue;

use self::scanner::{Scanner, StringState};
use super::json::check;
use crate::problem::Problem;

/// Maximum size of a body that is kept unchanged, in bytes: the position of a syntax error is then
/// that in the body.
const UNFILTERED: usize = 1 << 20;

/// Maximum size of the filtered body, in bytes: that of one message to a service.
const MAX_SIZE: usize = 16 << 20;

/// Fields that every update accepts: the version that it is based on, and an object with its
/// fields.
const ALWAYS: [&str; 2] = ["DataVersion", "UserData"];

/// The fields that an operation accepts.
#[derive(Clone, Copy)]
pub(crate) struct AcceptedFields {
    pub(crate) names: &'static [&'static str],
    /// The fields that are arrays of records, of which only the ids are accepted.
    pub(crate) references: &'static [&'static str],
}

/// A body that is being read, reduced to the fields that the operation accepts. Values of other
/// fields are replaced by `0`, so that the result is JSON if and only if the body is.
#[derive(Default)]
pub(crate) struct FieldFilter {
    accepted: Option<AcceptedFields>,
    is_large: bool,
    /// The filtered body, except for the current value.
    json: Vec<u8>,
    /// The current value: of a field, or of an element if the field is an array.
    value: Vec<u8>,
    position: Position,
    /// The start of the current field's name in `json`.
    name: usize,
    keep: Keep,
    /// The state of the current name.
    string: StringState,
    /// That of the current value.
    scanner: Scanner,
}

/// The position in the body.
#[derive(Clone, Copy, Default, PartialEq)]
enum Position {
    /// In the object, outside of values.
    #[default]
    Object,
    /// Before the value of a field.
    Field,
    /// In the array of a field, outside of its elements.
    Array,
    /// In the value of a field, or of an element of its array.
    Value { in_array: bool },
}

/// The part of a field that is kept.
#[derive(Clone, Copy, Default, PartialEq)]
enum Keep {
    #[default]
    Nothing,
    All,
    /// The ids of the records in the array.
    Ids,
}

/// The id of a record.
#[derive(Deserialize)]
struct RecordId<'a> {
    #[serde(rename = "Id", borrow)]
    id: Option<&'a RawValue>,
}

impl FieldFilter {
    /// Keeps only the accepted fields, if the body is large. The default filter keeps everything.
    pub(crate) fn new(accepted: AcceptedFields) -> Self {
        Self { accepted: Some(accepted), ..Self::default() }
    }

    /// Returns the size of the filtered body so far, in bytes.
    pub(crate) fn size(&self) -> usize {
        self.json.len() + self.value.len()
    }

    pub(crate) fn push(&mut self, chunk: &[u8]) -> Result<(), Problem> {
        let Some(accepted) = self.accepted else {
            self.json.extend_from_slice(chunk);
            return Ok(());
        };
        if self.is_large {
            return self.filter(accepted, chunk);
        }
        self.json.extend_from_slice(chunk);
        if self.json.len() <= UNFILTERED {
            return Ok(());
        }
        self.is_large = true;
        let beginning = mem::take(&mut self.json);
        self.filter(accepted, &beginning)
    }

    pub(crate) fn into_json(mut self) -> Vec<u8> {
        self.json.append(&mut self.value);
        self.json
    }

    fn filter(&mut self, accepted: AcceptedFields, chunk: &[u8]) -> Result<(), Problem> {
        for byte in chunk {
            self.push_byte(accepted, *byte)?;
        }
        if self.size() > MAX_SIZE { Err(Problem::too_large()) } else { Ok(()) }
    }

    fn push_byte(&mut self, accepted: AcceptedFields, byte: u8) -> Result<(), Problem> {
        match self.position {
            Position::Object => self.push_outside_values(accepted, byte),
            Position::Field | Position::Array if byte.is_ascii_whitespace() => self.json.push(byte),
            Position::Field if byte == b'[' => {
                self.json.push(byte);
                self.position = Position::Array;
            }
            Position::Array if byte == b',' => self.json.push(byte),
            Position::Array if byte == b']' => {
                self.json.push(byte);
                self.position = Position::Object;
            }
            Position::Field | Position::Array => {
                self.position = Position::Value { in_array: self.position == Position::Array };
                self.begin_value(byte);
            }
            Position::Value { in_array } => {
                if self.scanner.ends_before(byte) {
                    self.end_value(in_array)?;
                    return self.push_byte(accepted, byte);
                }
                self.value.push(byte);
                if self.scanner.ends_with(byte) {
                    self.end_value(in_array)?;
                }
            }
        }
        Ok(())
    }

    fn push_outside_values(&mut self, accepted: AcceptedFields, byte: u8) {
        self.json.push(byte);
        if self.string != StringState::Outside {
            self.string = self.string.after(byte);
            return;
        }
        match byte {
            b'"' => {
                self.string = StringState::Inside;
                self.name = self.json.len() - 1;
            }
            b':' => {
                let name = self.json[self.name..].trim_ascii_end();
                let name = name.strip_suffix(b":").unwrap_or_default();
                let name = serde_json::from_slice::<String>(name).unwrap_or_default();
                let name = name.as_str();
                self.keep = if accepted.references.contains(&name) {
                    Keep::Ids
                } else if accepted.names.contains(&name) || ALWAYS.contains(&name) {
                    Keep::All
                } else {
                    Keep::Nothing
                };
                self.position = Position::Field;
            }
            _ => {}
        }
    }

    fn begin_value(&mut self, byte: u8) {
        self.value.push(byte);
        self.scanner = Scanner::begin(byte);
    }

    /// Keeps the accepted part of the value.
    fn end_value(&mut self, in_array: bool) -> Result<(), Problem> {
        self.position = if in_array { Position::Array } else { Position::Object };
        let value = mem::take(&mut self.value);
        if self.keep == Keep::Nothing {
            check(&value)?;
            self.json.push(b'0');
        } else if let Some(id) = self.reference(in_array, &value) {
            self.json.extend_from_slice(id.as_bytes());
        } else {
            self.json.extend_from_slice(&value);
        }
        self.value = value;
        self.value.clear();
        Ok(())
    }

    /// Returns the reference to a record, if only its id is accepted.
    fn reference(&self, in_array: bool, value: &[u8]) -> Option<String> {
        if self.keep != Keep::Ids || !in_array || !value.starts_with(b"{") {
            return None;
        }
        let RecordId { id } = serde_json::from_str(check(value).ok()?).ok()?;
        Some(id.map_or_else(|| "{}".to_owned(), |id| format!("{{\"Id\":{id}}}")))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const ACCEPTED: AcceptedFields =
        AcceptedFields { names: &["Name", "Cases"], references: &["Cases"] };

    /// Filters a body that arrives in chunks of a size.
    fn filtered(body: &str, size: usize) -> Result<String, Problem> {
        let mut filter = FieldFilter { is_large: true, ..FieldFilter::new(ACCEPTED) };
        for chunk in body.as_bytes().chunks(size) {
            filter.push(chunk)?;
        }
        Ok(String::from_utf8(filter.into_json()).unwrap())
    }

    #[test]
    fn accepted_fields_are_kept_for_any_size_of_chunks() {
        let body = json!({
            "Na\"me": "x", "Name": "a \" { [ \\", "More": {"Name": [1, "]"]}, "Other": [[1], {}, "]"],
            "Cases": [{"Name": "x", "Id": "1", "More": {"Id": 2}}, {"Id": {"Id": "3"}}, {}, 5, null, []],
            "Number": -1.5e3, "Last": null,
        });
        let expected = json!({
            "Na\"me": 0, "Name": "a \" { [ \\", "More": 0, "Other": [0, 0, 0],
            "Cases": [{"Id": "1"}, {"Id": {"Id": "3"}}, {}, 5, null, []],
            "Number": 0, "Last": 0,
        });
        for text in [body.to_string(), serde_json::to_string_pretty(&body).unwrap()] {
            for size in [1, 2, 7, text.len()] {
                let json = filtered(&text, size).unwrap();
                assert_eq!(serde_json::from_str::<Value>(&json).unwrap(), expected);
            }
        }
    }

    #[test]
    fn malformed_json_stays_malformed() {
        for wrong in [
            r#"{"More":tru}"#,
            r#"{"More":{"a"}}"#,
            r#"{"More":[1 2]}"#,
            r#"{"More":[1,]}"#,
            r#"{"More":1,}"#,
            r#"{"More":1"#,
            r#"{"Name":"x"#,
            r#"{"Cases":[{"Id":1}"#,
            r#"{"Cases":[{"Id":1,}]}"#,
            r#"{"Name" "x"}"#,
            r#"{"Name":"x"}}"#,
            r#"{"Name":"x"} 1"#,
        ] {
            let is_json = filtered(wrong, 3).is_ok_and(|json| check(json.as_bytes()).is_ok());
            assert!(!is_json, "{wrong}");
        }
    }

    #[test]
    fn a_small_body_is_kept_unchanged() {
        let mut filter = FieldFilter::new(ACCEPTED);
        filter.push(b"{\"More\": 5}").unwrap();
        assert_eq!(filter.into_json(), b"{\"More\": 5}");
    }
}
