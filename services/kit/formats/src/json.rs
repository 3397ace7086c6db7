//! Reads JSON of any size one element at a time, and tolerates unusual values.

pub(crate) mod allowance;
mod lenient;
mod values;

use std::io::{self, BufRead, ErrorKind};

use assay_proto::Fault;
use assay_weight::Weight;
use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor,
};
use serde_json::de::IoRead;

use self::lenient::Kept;
pub(crate) use self::{
    lenient::Lenient,
    values::{Flag, List, Map, Name, Number, Tail, Text},
};
use crate::{
    Sink, Test,
    decoded::{Decoded, Replaced, encoding_of},
    fault::{broken, truncated},
};

/// The parser of a document.
pub(crate) type Json<'f> = serde_json::Deserializer<IoRead<Lenient<&'f mut dyn BufRead>>>;

/// Receives the tests of a document.
pub(crate) struct Output<'s> {
    pub(crate) sink: Sink<'s>,
    /// Failure of the sink, which serde cannot carry.
    failure: Option<Fault>,
    kept: Kept,
}

impl Output<'_> {
    /// Passes a test on.
    pub(crate) fn add<E: Error>(&mut self, test: Test) -> Result<(), E> {
        self.kept.set(0);
        allowance::renew();
        self.sink.add(test).map_err(|fault| self.stop(fault))
    }

    /// Calls a method of the sink.
    pub(crate) fn with<E: Error>(
        &mut self,
        call: impl FnOnce(Sink<'_>) -> Result<(), Fault>,
    ) -> Result<(), E> {
        call(&mut *self.sink).map_err(|fault| self.stop(fault))
    }

    /// Keeps a fault, and returns an error that ends the parser.
    pub(crate) fn stop<E: Error>(&mut self, fault: Fault) -> E {
        self.failure = Some(fault);
        E::custom("stopped")
    }
}

/// Parses a document of the format with this name.
pub(crate) fn read(
    format: &str,
    file: &mut dyn BufRead,
    sink: Sink<'_>,
    parse: impl FnOnce(&mut Json<'_>, &mut Output<'_>) -> serde_json::Result<()>,
) -> Result<(), Fault> {
    let file = Lenient::new(file, sink.replaced());
    let mut output = Output { sink, failure: None, kept: file.kept() };
    allowance::renew();
    let mut json = serde_json::Deserializer::from_reader(file);
    let read = parse(&mut json, &mut output).and_then(|()| json.end());
    match output.failure {
        Some(fault) => Err(fault),
        None => read.map_err(|error| fault(format, &error, error.line())),
    }
}

/// Parses a document in memory that clients sent. Characters and numbers that parsers refuse are
/// replaced. Fails if it has too many values.
pub fn parse_lenient<T: DeserializeOwned>(json: &[u8]) -> serde_json::Result<T> {
    if Weight::of(json).is_excessive() {
        return Err(Error::custom("it has too many objects and values: send less in one request"));
    }
    serde_json::from_slice(json).or_else(|_| parse_lenient_from(json))
}

/// Parses a document that clients sent while it is read. The caller has weighed it.
pub fn parse_lenient_from<T: DeserializeOwned>(json: impl BufRead) -> serde_json::Result<T> {
    serde_json::from_reader(lenient(json).map_err(serde_json::Error::io)?)
}

/// Returns a document that clients sent as JSON that parsers accept.
pub fn lenient<'j>(mut json: impl BufRead + 'j) -> io::Result<impl BufRead + 'j> {
    let encoding = encoding_of(json.fill_buf()?);
    let text = Decoded::new(json, encoding, Replaced::default());
    Ok(Lenient::new(text, Replaced::default()))
}

/// Parses one value in this line. A line that is not valid is lost, and the sink reports its place.
pub(crate) fn parse<T: DeserializeOwned>(json: &[u8], line: usize, sink: Sink<'_>) -> Option<T> {
    allowance::renew();
    let parsed = serde_json::from_slice(json);
    parsed.map_err(|error| sink.lose(&format!("line {line}"), &message(&error))).ok()
}

fn fault(format: &str, error: &serde_json::Error, line: usize) -> Fault {
    if error.io_error_kind() == Some(ErrorKind::InvalidData) {
        return lenient::too_deep();
    }
    let place = format!("line {line}, column {}", error.column());
    if error.is_eof() {
        return truncated(format, &place);
    }
    broken(format, &place, format_args!("it is not as expected: {}", message(error)))
}

/// Returns the message of an error without its place.
pub(crate) fn message(error: &serde_json::Error) -> String {
    let message = error.to_string();
    message.rsplit_once(" at line ").map_or(&*message, |(message, _)| message).to_owned()
}

/// Handles the members of an object, one after the other. It has to consume each value.
pub(crate) trait Members {
    fn member<'de, A: MapAccess<'de>>(&mut self, name: &str, map: &mut A) -> Result<(), A::Error>;
}

/// Parses an object by its handler. `null` and `false`, which tools write for none, have no members.
pub(crate) struct Object<'m, M>(pub(crate) &'m mut M);

impl<'de, M: Members> DeserializeSeed<'de> for Object<'_, M> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, value: D) -> Result<(), D::Error> {
        value.deserialize_any(self)
    }
}

impl<'de, M: Members> Visitor<'de> for Object<'_, M> {
    type Value = ();

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(Text(name)) = map.next_key::<Text<256>>()? {
            self.0.member(&name, &mut map)?;
        }
        Ok(())
    }

    fn visit_unit<F: Error>(self) -> Result<(), F> {
        Ok(())
    }

    fn visit_bool<F: Error>(self, _: bool) -> Result<(), F> {
        Ok(())
    }
}

/// Handles the elements of an array, one after the other.
pub(crate) trait Elements {
    /// Parses the next element. Returns whether there was one.
    fn element<'de, A: SeqAccess<'de>>(&mut self, sequence: &mut A) -> Result<bool, A::Error>;
}

/// Parses an array by its handler. `null` is an empty array.
pub(crate) struct Array<'e, E>(pub(crate) &'e mut E);

impl<'de, E: Elements> DeserializeSeed<'de> for Array<'_, E> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, value: D) -> Result<(), D::Error> {
        value.deserialize_any(self)
    }
}

impl<'de, E: Elements> Visitor<'de> for Array<'_, E> {
    type Value = ();

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("an array")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<(), A::Error> {
        while self.0.element(&mut sequence)? {}
        Ok(())
    }

    fn visit_unit<F: Error>(self) -> Result<(), F> {
        Ok(())
    }
}

/// The beginning of a JSON document.
#[derive(Debug, Default)]
pub(crate) struct Outline {
    /// First character of the document that is not white space.
    pub(crate) first: u8,
    /// Names of members with the number of objects and arrays around them, in the order of the file.
    names: Vec<(usize, String)>,
}

impl Outline {
    /// Maximum depth of names that are kept.
    const DEEPEST: usize = 3;

    /// Scans the beginning of a document.
    pub(crate) fn of(head: &[u8]) -> Self {
        let mut outline = Self::default();
        let (mut depth, mut text, mut position) = (0_usize, None, 0);
        while let Some(byte) = head.get(position).copied() {
            if outline.first == 0 && !byte.is_ascii_whitespace() {
                outline.first = byte;
            }
            match byte {
                b'"' => {
                    let start = position + 1;
                    position = start;
                    while head.get(position).is_some_and(|byte| *byte != b'"') {
                        position += if head[position] == b'\\' { 2 } else { 1 };
                    }
                    text = head.get(start..position).filter(|_| depth <= Self::DEEPEST);
                }
                b':' => {
                    if let Some(name) = text.take() {
                        outline.names.push((depth, String::from_utf8_lossy(name).into_owned()));
                    }
                }
                b'{' | b'[' => depth += 1,
                b'}' | b']' => depth = depth.saturating_sub(1),
                _ => {}
            }
            position += 1;
        }
        outline
    }

    /// Returns whether a member with this name is at this depth: 1 in the outermost object.
    pub(crate) fn has(&self, depth: usize, name: &str) -> bool {
        self.names.iter().any(|found| found.0 == depth && found.1 == name)
    }

    /// Returns the first name.
    pub(crate) fn first_name(&self) -> &str {
        self.names.first().map_or("", |(_, name)| name)
    }
}
