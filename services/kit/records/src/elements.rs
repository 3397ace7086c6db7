//! Parses bodies with many JSON records one at a time, so that they are never all in memory.

use std::io::Read;

use assay_proto::{Fault, Violation};
use serde::{
    Deserialize,
    de::{Deserializer as _, Error, SeqAccess, Visitor},
};
use serde_json::{Deserializer, value::RawValue};
use serde_path_to_error::{Path, Segment};

use crate::below;

/// Parses a JSON array, or a sequence of values (`lines`), and calls `handle` with each element as
/// soon as it is complete. Stops at the first error.
pub fn read(
    body: impl Read,
    lines: bool,
    mut handle: impl FnMut(&RawValue) -> Result<(), Fault>,
) -> Result<(), Fault> {
    let mut json = Deserializer::from_reader(body);
    if lines {
        for element in json.into_iter::<Box<RawValue>>() {
            handle(&element.map_err(|error| malformed(&error))?)?;
        }
        return Ok(());
    }
    let mut failure = None;
    let array = Array { handle, failure: &mut failure };
    let read = json.deserialize_seq(array).and_then(|()| json.end());
    if let Some(fault) = failure {
        return Err(fault);
    }
    read.map_err(|error| malformed(&error))
}

/// Parses the element at `index` of a body. It is valid JSON, so any error concerns a field.
pub fn parse<'a, T: Deserialize<'a>>(json: &'a RawValue, index: usize) -> Result<T, Violation> {
    let mut json = Deserializer::from_str(json.get());
    serde_path_to_error::deserialize(&mut json).map_err(|error| Violation {
        field: pointer(index, error.path()),
        problem: without_position(&error.inner().to_string()).to_owned(),
    })
}

/// Returns the JSON pointer, without its leading slash, to a path in the element at `index`.
fn pointer(index: usize, path: &Path) -> String {
    path.iter().fold(index.to_string(), |pointer, segment| match segment {
        Segment::Seq { index } => below(&pointer, &index.to_string()),
        Segment::Map { key } => below(&pointer, key),
        Segment::Enum { .. } | Segment::Unknown => pointer,
    })
}

/// Removes the position from the message of a parser: it counts from the start of the element, not
/// of the body.
fn without_position(message: &str) -> &str {
    message.rsplit_once(" at line ").map_or(message, |(message, _)| message)
}

fn malformed(error: &serde_json::Error) -> Fault {
    if error.is_data() {
        return Fault::invalid("", without_position(&error.to_string()));
    }
    let (line, column) = (error.line(), error.column());
    Fault::Malformed(format!("the body is not valid JSON: see line {line}, column {column}"))
}

struct Array<'a, F> {
    handle: F,
    /// Error of `handle`, which serde cannot carry.
    failure: &'a mut Option<Fault>,
}

impl<'de, F: FnMut(&RawValue) -> Result<(), Fault>> Visitor<'de> for Array<'_, F> {
    type Value = ();

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("an array")
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut elements: A) -> Result<(), A::Error> {
        while let Some(element) = elements.next_element::<Box<RawValue>>()? {
            if let Err(fault) = (self.handle)(&element) {
                *self.failure = Some(fault);
                return Err(A::Error::custom("stopped"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(body: &str, lines: bool) -> Result<Vec<String>, Fault> {
        let mut texts = Vec::new();
        read(body.as_bytes(), lines, |element| {
            texts.push(element.get().to_owned());
            if texts.len() > 3 { Err(Fault::invalid("", "too many")) } else { Ok(()) }
        })?;
        Ok(texts)
    }

    #[test]
    fn arrays_and_sequences_have_the_same_elements() {
        assert_eq!(texts("[1, {\"a\": [2]} ]", false).unwrap(), ["1", "{\"a\": [2]}"]);
        assert_eq!(texts("1\n{\"a\":\n[2]}\n", true).unwrap(), ["1", "{\"a\":\n[2]}"]);
        assert!(texts("", true).unwrap().is_empty());
        assert!(texts(" [] ", false).unwrap().is_empty());
    }

    #[test]
    fn malformed_and_oversized_lists_are_rejected() {
        for (body, lines) in
            [("", false), ("[1", false), ("[1] 2", false), ("{", true), ("x", true)]
        {
            assert!(matches!(texts(body, lines), Err(Fault::Malformed(_))), "{body}");
        }
        for (body, lines) in [("{}", false), ("[1,2,3,4,", false), ("1 2 3 4 x", true)] {
            assert!(matches!(texts(body, lines), Err(Fault::Invalid(_))), "{body}");
        }
    }

    #[test]
    fn violations_have_a_pointer_to_the_field() {
        #[derive(Debug, Deserialize)]
        struct Line {
            #[serde(rename = "a/b")]
            _numbers: Vec<u8>,
        }
        let json = RawValue::from_string(r#"{"a/b": [1, "x"]}"#.to_owned()).unwrap();
        let violation = parse::<Line>(&json, 7).unwrap_err();
        assert_eq!(violation.field, "7/a~1b/1");
        assert!(violation.problem.starts_with("invalid type: string"), "{}", violation.problem);
    }
}
