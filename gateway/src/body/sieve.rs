//! Bodies as they come in. Of a large one, only what its operation takes is kept: clients send
//! whole records back, and a test set comes with all that is known of its test cases.

use std::mem;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::check;
use crate::problem::Problem;

/// A body up to this size is kept as it is, so that the position of a mistake is that in the body.
const SMALL: usize = 1 << 20;

/// Maximum size of what is kept of a body: what one message to a service may have.
const KEPT: usize = 16 << 20;

/// The fields that any update takes besides: the version that it is based on, and an object that
/// holds its fields.
const ALWAYS: [&str; 2] = ["DataVersion", "UserData"];

/// The part of an object in a body that an operation takes.
#[derive(Clone, Copy)]
pub(crate) struct Taken {
    /// The names of the fields.
    pub(crate) fields: &'static [&'static str],
    /// Those of them that are arrays of records, of which only the ids are taken.
    pub(crate) references: &'static [&'static str],
}

/// Keeps a body, or what is taken of it. What isn't taken is replaced by `0`, so that the text is
/// JSON if and only if the body is.
#[derive(Default)]
pub(crate) struct Sieve {
    taken: Option<Taken>,
    is_large: bool,
    kept: Vec<u8>,
    /// The value that is being read: of a field, or an element of the array that a field is.
    value: Vec<u8>,
    at: At,
    /// The start of the current field's name in `kept`.
    name: usize,
    /// The part of the current field that is kept.
    takes: Takes,
    text: Text,
    /// Number of arrays and objects that are open within the value.
    open: usize,
}

#[derive(Clone, Copy, Default, PartialEq)]
enum At {
    /// Around fields and their names.
    #[default]
    Object,
    /// Before the value of a field.
    Field,
    /// In the array that a field is, around its elements.
    Array,
    /// In a value, after which the place is as it was before.
    Value { in_array: bool },
}

#[derive(Clone, Copy, Default, PartialEq)]
enum Takes {
    #[default]
    Nothing,
    All,
    /// The ids of the records in the array that the field is.
    Ids,
}

/// The place in a string.
#[derive(Clone, Copy, Default, PartialEq)]
enum Text {
    #[default]
    Outside,
    Inside,
    /// After a backslash.
    Escaped,
}

impl Text {
    /// The place after a further byte, if the place before it was in a string.
    fn after(self, byte: u8) -> Self {
        match (self, byte) {
            (Self::Inside, b'"') => Self::Outside,
            (Self::Inside, b'\\') => Self::Escaped,
            _ => Self::Inside,
        }
    }
}

/// A record, of which only the id is taken.
#[derive(Deserialize)]
struct Named<'a> {
    #[serde(rename = "Id", borrow)]
    id: Option<&'a RawValue>,
}

impl Sieve {
    /// Keeps the fields that are taken, once the body is large.
    pub(crate) fn of(taken: Taken) -> Self {
        Self { taken: Some(taken), ..Self::default() }
    }

    /// Returns the size of what is kept, in bytes.
    pub(crate) fn size(&self) -> usize {
        self.kept.len() + self.value.len()
    }

    pub(crate) fn push(&mut self, chunk: &[u8]) -> Result<(), Problem> {
        let Some(taken) = self.taken else {
            self.kept.extend_from_slice(chunk);
            return Ok(());
        };
        if self.is_large {
            return self.sift(taken, chunk);
        }
        self.kept.extend_from_slice(chunk);
        if self.kept.len() <= SMALL {
            return Ok(());
        }
        self.is_large = true;
        let begun = mem::take(&mut self.kept);
        self.sift(taken, &begun)
    }

    pub(crate) fn into_kept(mut self) -> Vec<u8> {
        self.kept.append(&mut self.value);
        self.kept
    }

    fn sift(&mut self, taken: Taken, chunk: &[u8]) -> Result<(), Problem> {
        for byte in chunk {
            self.take(taken, *byte)?;
        }
        if self.size() > KEPT { Err(Problem::too_large()) } else { Ok(()) }
    }

    fn take(&mut self, taken: Taken, byte: u8) -> Result<(), Problem> {
        match self.at {
            At::Object => self.around_fields(taken, byte),
            At::Field | At::Array if byte.is_ascii_whitespace() => self.kept.push(byte),
            At::Field if byte == b'[' => {
                self.kept.push(byte);
                self.at = At::Array;
            }
            At::Array if byte == b',' => self.kept.push(byte),
            At::Array if byte == b']' => {
                self.kept.push(byte);
                self.at = At::Object;
            }
            At::Field | At::Array => {
                self.at = At::Value { in_array: self.at == At::Array };
                self.begin(byte);
            }
            At::Value { in_array } => {
                if self.ends_before(byte) {
                    self.end(in_array)?;
                    return self.take(taken, byte);
                }
                self.value.push(byte);
                if self.ends_with(byte) {
                    self.end(in_array)?;
                }
            }
        }
        Ok(())
    }

    fn around_fields(&mut self, taken: Taken, byte: u8) {
        self.kept.push(byte);
        if self.text != Text::Outside {
            self.text = self.text.after(byte);
            return;
        }
        match byte {
            b'"' => {
                self.text = Text::Inside;
                self.name = self.kept.len() - 1;
            }
            b':' => {
                let name = self.kept[self.name..].trim_ascii_end();
                let name = name.strip_suffix(b":").unwrap_or_default();
                let name = serde_json::from_slice::<String>(name).unwrap_or_default();
                let name = name.as_str();
                self.takes = if taken.references.contains(&name) {
                    Takes::Ids
                } else if taken.fields.contains(&name) || ALWAYS.contains(&name) {
                    Takes::All
                } else {
                    Takes::Nothing
                };
                self.at = At::Field;
            }
            _ => {}
        }
    }

    fn begin(&mut self, byte: u8) {
        self.value.push(byte);
        self.text = if byte == b'"' { Text::Inside } else { Text::Outside };
        self.open = usize::from(matches!(byte, b'{' | b'['));
    }

    /// Returns whether this byte follows a complete number, `true`, `false` or `null`.
    fn ends_before(&self, byte: u8) -> bool {
        let is_scalar = self.text == Text::Outside && self.open == 0;
        is_scalar && (byte.is_ascii_whitespace() || matches!(byte, b',' | b']' | b'}'))
    }

    /// Returns whether this byte completes a string, array or object.
    fn ends_with(&mut self, byte: u8) -> bool {
        if self.text != Text::Outside {
            self.text = self.text.after(byte);
            return self.text == Text::Outside && self.open == 0;
        }
        match byte {
            b'"' => self.text = Text::Inside,
            b'{' | b'[' => self.open += 1,
            b'}' | b']' => {
                self.open = self.open.saturating_sub(1);
                return self.open == 0;
            }
            _ => {}
        }
        false
    }

    /// Keeps what is taken of the value.
    fn end(&mut self, in_array: bool) -> Result<(), Problem> {
        self.at = if in_array { At::Array } else { At::Object };
        let value = mem::take(&mut self.value);
        if self.takes == Takes::Nothing {
            check(&value)?;
            self.kept.push(b'0');
        } else if let Some(id) = self.reference(in_array, &value) {
            self.kept.extend_from_slice(id.as_bytes());
        } else {
            self.kept.extend_from_slice(&value);
        }
        self.value = value;
        self.value.clear();
        Ok(())
    }

    /// The reference to a record, if that is what is taken of it.
    fn reference(&self, in_array: bool, value: &[u8]) -> Option<String> {
        if self.takes != Takes::Ids || !in_array || !value.starts_with(b"{") {
            return None;
        }
        let Named { id } = serde_json::from_str(check(value).ok()?).ok()?;
        Some(id.map_or_else(|| "{}".to_owned(), |id| format!("{{\"Id\":{id}}}")))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const TAKEN: Taken = Taken { fields: &["Name", "Cases"], references: &["Cases"] };

    /// Returns what is kept of a body that arrives in pieces of a size.
    fn kept(body: &str, size: usize) -> Result<String, Problem> {
        let mut sieve = Sieve { is_large: true, ..Sieve::of(TAKEN) };
        for chunk in body.as_bytes().chunks(size) {
            sieve.push(chunk)?;
        }
        Ok(String::from_utf8(sieve.into_kept()).unwrap())
    }

    #[test]
    fn what_is_taken_is_kept_however_it_comes() {
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
                let kept = kept(&text, size).unwrap();
                assert_eq!(serde_json::from_str::<Value>(&kept).unwrap(), expected);
            }
        }
    }

    #[test]
    fn what_is_not_json_does_not_become_json() {
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
            let is_json = kept(wrong, 3).is_ok_and(|kept| check(kept.as_bytes()).is_ok());
            assert!(!is_json, "{wrong}");
        }
    }

    #[test]
    fn a_small_body_is_kept_as_it_is() {
        let mut sieve = Sieve::of(TAKEN);
        sieve.push(b"{\"More\": 5}").unwrap();
        assert_eq!(sieve.into_kept(), b"{\"More\": 5}");
    }
}
