//! Parses bodies with many JSON records one at a time, so that they are never all in memory.

mod window;

use std::io::BufRead;

use assay_proto::{Fault, Violation, unknown_field};
use assay_weight::{Weight, at_most};
use serde::Deserialize;
use serde_json::{Deserializer, value::RawValue};
use serde_path_to_error::{Path, Segment};

use self::window::Window;
use crate::below;

/// Maximum weight of an element, in bytes. The 20,000 steps of the largest result fit.
const HEAVIEST: usize = 24 << 20;

/// Weight up to which an element is not weighed exactly, in bytes.
const LIGHT: usize = 64 << 10;

/// Parses a JSON array, or a sequence of values (`lines`), and calls `handle` with each element as
/// soon as it is complete, and with the memory that the element takes when it is parsed, without its texts,
/// in bytes. Stops at the first error, such as an element of too many values.
pub fn read(
    body: impl BufRead,
    lines: bool,
    mut handle: impl FnMut(&RawValue, usize) -> Result<(), Fault>,
) -> Result<(), Fault> {
    let mut handle = |element: &RawValue| {
        let weight = weight(element.get().as_bytes());
        if weight > HEAVIEST { Err(too_heavy()) } else { handle(element, weight) }
    };
    let mut body = Window::new(body);
    if lines {
        while body.peek()?.is_some() {
            body.value(&mut handle)?;
        }
        return Ok(());
    }
    if body.peek()? != Some(b'[') {
        body.value(|_| Ok(()))?;
        return Err(Fault::invalid("", "must be an array"));
    }
    body.pass();
    if body.peek()? == Some(b']') {
        body.pass();
    } else {
        loop {
            body.value(&mut handle)?;
            let separator = body.peek()?;
            match separator {
                Some(b',') => body.pass(),
                Some(b']') => break body.pass(),
                _ => return Err(body.malformed()),
            }
        }
    }
    body.peek()?.map_or(Ok(()), |_| Err(body.malformed()))
}

/// Parses the element at `index` of a body. It is valid JSON, so any error concerns a field.
pub fn parse<'a, T: Deserialize<'a>>(json: &'a RawValue, index: usize) -> Result<T, Violation> {
    // The path to each field is only known to the second, slower parser.
    serde_json::from_str(json.get()).or_else(|_| {
        let mut json = Deserializer::from_str(json.get());
        serde_path_to_error::deserialize(&mut json).map_err(|error| {
            let field = pointer(index, error.path());
            violation(field, without_position(&error.inner().to_string()))
        })
    })
}

/// Returns the violation of a rule of serde at a field.
fn violation(field: String, problem: &str) -> Violation {
    let Some((name, advice)) = unknown_field(problem) else {
        return Violation { field, problem: problem.to_owned() };
    };
    let is_named = field.rsplit('/').next() == Some(name);
    let field = if is_named { field } else { below(&field, name) };
    Violation { field, problem: advice }
}

/// Returns the weight of an element, or one that it has at most if that is light.
fn weight(json: &[u8]) -> usize {
    match at_most(json) {
        light if light <= LIGHT => light,
        _ => Weight::of(json).bytes(),
    }
}

fn too_heavy() -> Fault {
    let reason = "a record in the body has too many objects and values".to_owned();
    Fault::Refused { code: "too_large", reason }
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

#[cfg(test)]
mod tests {
    use std::io::BufReader;

    use super::*;

    fn texts(body: &str, lines: bool) -> Result<Vec<String>, Fault> {
        let mut texts = Vec::new();
        read(body.as_bytes(), lines, |element, _| {
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
    fn elements_are_found_in_any_part_of_a_body() {
        let long = format!("{{\"a\": [\"{}ä\\\"]\"]}}", "x".repeat(3 * window::SIZE));
        let elements = ["12345", &long, "true"];
        let bodies =
            [(elements.join(" \n"), true), (format!("[ {} ]\n", elements.join(" ,\r\n")), false)];
        for (body, lines) in bodies {
            for buffer in [1, 7, window::SIZE] {
                let (mut index, body) = (0, BufReader::with_capacity(buffer, body.as_bytes()));
                let same = |element: &RawValue, _| {
                    assert_eq!(element.get(), elements[index]);
                    index += 1;
                    Ok(())
                };
                read(body, lines, same).unwrap();
                assert_eq!(index, elements.len());
            }
        }
    }

    #[test]
    fn elements_are_found_wherever_a_window_ends_within_them() {
        for element in ["-12", "0.5", "1e-5", "1.25E+30", "true", "null", r#""\u00e4\n""#, "[0.5]"]
        {
            for cut in 1..element.len() {
                let long = format!("\"{}\"", "x".repeat(window::SIZE - cut - 3));
                let body = format!("{long}\n{element}\n");
                assert_eq!(body.find(element), Some(window::SIZE - cut));
                let mut found = String::new();
                read(BufReader::with_capacity(1, body.as_bytes()), true, |value, _| {
                    found = value.get().to_owned();
                    Ok(())
                })
                .unwrap();
                assert_eq!(found, element);
            }
        }
    }

    #[test]
    fn errors_have_their_position_in_the_body() {
        let long = "x".repeat(window::SIZE);
        for (body, position) in [
            ("[1,\n 2 3]".to_owned(), "line 2, column 4"),
            ("[1,\n 2] 3".to_owned(), "line 2, column 5"),
            (format!("[1,\n\"{long}\",\n  x]"), "line 3, column 3"),
            (format!("[1,\n\"{long}\", x]"), &format!("line 2, column {}", window::SIZE + 5)),
        ] {
            let error = read(body.as_bytes(), false, |_, _| Ok(())).unwrap_err().to_string();
            assert!(error.contains(position), "{error}");
        }
    }

    #[test]
    fn an_element_of_too_many_values_is_refused() {
        let read = |count| {
            let line = vec![r#""""#; count].join(",");
            read(format!("[{line}]").as_bytes(), true, |_, _| Ok(()))
        };
        read(100_000).unwrap();
        assert!(matches!(read(1_000_000), Err(Fault::Refused { code: "too_large", .. })));
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
