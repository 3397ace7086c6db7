//! Bodies that bring many records as JSON: read one at a time, so that only what is made of each is
//! kept.

use std::io::Read;

use assay_proto::{Fault, Violation};
use serde::{
    Deserialize,
    de::{Deserializer as _, Error, SeqAccess, Visitor},
};
use serde_json::{Deserializer, value::RawValue};
use serde_path_to_error::{Path, Segment};

use crate::below;

/// Reads a JSON array, or one value after the other (`lines`), and has each element taken as soon
/// as it is there, until one is refused.
pub fn read(
    body: impl Read,
    lines: bool,
    mut take: impl FnMut(&RawValue) -> Result<(), Fault>,
) -> Result<(), Fault> {
    let mut json = Deserializer::from_reader(body);
    if lines {
        for element in json.into_iter::<Box<RawValue>>() {
            take(&element.map_err(|error| malformed(&error))?)?;
        }
        return Ok(());
    }
    let mut refused = None;
    let array = Array { take, refused: &mut refused };
    let read = json.deserialize_seq(array).and_then(|()| json.end());
    if let Some(fault) = refused {
        return Err(fault);
    }
    read.map_err(|error| malformed(&error))
}

/// Reads the element at `index` of a body. That it is JSON is known, so what fails is a field.
pub fn parse<'a, T: Deserialize<'a>>(json: &'a RawValue, index: usize) -> Result<T, Violation> {
    let mut json = Deserializer::from_str(json.get());
    serde_path_to_error::deserialize(&mut json).map_err(|error| Violation {
        field: pointer(index, error.path()),
        problem: without_place(&error.inner().to_string()).to_owned(),
    })
}

/// The JSON pointer, without its leading slash, to a place within an element.
fn pointer(index: usize, path: &Path) -> String {
    path.iter().fold(index.to_string(), |pointer, segment| match segment {
        Segment::Seq { index } => below(&pointer, &index.to_string()),
        Segment::Map { key } => below(&pointer, key),
        Segment::Enum { .. } | Segment::Unknown => pointer,
    })
}

/// The message of a parser without the place within the element, which says nothing to its sender.
fn without_place(message: &str) -> &str {
    message.rsplit_once(" at line ").map_or(message, |(message, _)| message)
}

fn malformed(error: &serde_json::Error) -> Fault {
    if error.is_data() {
        return Fault::invalid("", without_place(&error.to_string()));
    }
    let (line, column) = (error.line(), error.column());
    Fault::Malformed(format!("the body is not JSON at line {line}, column {column}"))
}

struct Array<'a, F> {
    take: F,
    refused: &'a mut Option<Fault>,
}

impl<'de, F: FnMut(&RawValue) -> Result<(), Fault>> Visitor<'de> for Array<'_, F> {
    type Value = ();

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("an array")
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut elements: A) -> Result<(), A::Error> {
        while let Some(element) = elements.next_element::<Box<RawValue>>()? {
            if let Err(fault) = (self.take)(&element) {
                *self.refused = Some(fault);
                return Err(A::Error::custom("refused"));
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
    fn elements_come_one_after_the_other() {
        assert_eq!(texts("[1, {\"a\": [2]} ]", false).unwrap(), ["1", "{\"a\": [2]}"]);
        assert_eq!(texts("1\n{\"a\":\n[2]}\n", true).unwrap(), ["1", "{\"a\":\n[2]}"]);
        assert!(texts("", true).unwrap().is_empty());
        assert!(texts(" [] ", false).unwrap().is_empty());
    }

    #[test]
    fn what_is_no_list_is_refused_and_so_is_what_is_too_much() {
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
    fn a_field_is_named_by_its_place() {
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
