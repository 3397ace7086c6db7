//! The parser. It handles one XML event after the other, without recursion.

use std::io::{self, BufRead, Read};

use assay_proto::{Fault, Timestamp};
use quick_xml::{
    Error, Reader, XmlVersion,
    encoding::DecodingReader,
    escape::resolve_predefined_entity,
    events::{BytesDecl, BytesRef, BytesStart, Event},
};

use crate::{
    ABORTED, Attempt, Kind, Nature, Problem, Test,
    values::{seconds, shortened, time},
};

/// Size of the beginning of a file that is searched for its encoding, in bytes.
const HEAD: u64 = 512;

/// Maximum nesting depth of elements.
const DEEPEST: usize = 64;

/// Maximum number of problems of a test. Further ones are dropped.
const MOST_PROBLEMS: usize = 20;

/// Size of the beginning of a text that is kept, in bytes.
const TEXT: usize = 32 << 10;

/// Size of the beginning of a message, class or name that is kept, in bytes.
const MESSAGE: usize = 4 << 10;

/// Size of the end of an output that is kept, in bytes.
const OUTPUT: usize = 4 << 10;

/// Meaning of an element.
#[derive(Clone, Copy, PartialEq)]
enum Element {
    Suites,
    Suite,
    Test,
    Problem(Kind),
    Skipped,
    Output,
    Other,
}

impl Element {
    fn named(name: &str) -> Self {
        let problem = |nature, attempt| Self::Problem(Kind { nature, attempt });
        match name {
            "testsuites" => Self::Suites,
            "testsuite" => Self::Suite,
            "testcase" => Self::Test,
            "failure" => problem(Nature::Failure, Attempt::Decisive),
            "error" => problem(Nature::Error, Attempt::Decisive),
            "rerunFailure" => problem(Nature::Failure, Attempt::Repeated),
            "rerunError" => problem(Nature::Error, Attempt::Repeated),
            "flakyFailure" => problem(Nature::Failure, Attempt::Flaky),
            "flakyError" => problem(Nature::Error, Attempt::Flaky),
            "skipped" => Self::Skipped,
            "system-out" | "system-err" => Self::Output,
            _ => Self::Other,
        }
    }
}

#[derive(Default)]
struct Suite {
    name: String,
    start: Option<Timestamp>,
}

/// State of the parser.
struct Parser<S> {
    /// Open elements, outermost first.
    elements: Vec<Element>,
    suites: Vec<Suite>,
    test: Option<Test>,
    /// Receives the tests.
    sink: S,
}

/// Parses a file, and passes each test to `sink` as soon as it is complete. Stops if `sink` fails.
pub fn read(file: impl BufRead, sink: impl FnMut(Test) -> Result<(), Fault>) -> Result<(), Fault> {
    let broken = |error: io::Error| malformed(0, &error.into());
    let mut reader = Reader::from_reader(decoded(file).map_err(broken)?);
    reader.config_mut().expand_empty_elements = true;
    let mut parser = Parser { elements: Vec::new(), suites: Vec::new(), test: None, sink };
    let (mut buffer, mut is_empty) = (Vec::new(), true);
    loop {
        buffer.clear();
        let event = reader.read_event_into(&mut buffer);
        match event.map_err(|error| malformed(reader.error_position(), &error))? {
            Event::DocType(doctype) => reject_declarations(&doctype)?,
            Event::Start(element) => {
                is_empty = false;
                parser.open(&element)?;
            }
            Event::End(_) => parser.close()?,
            Event::Text(text) => parser.add_text(&text.xml10_content()),
            Event::CData(text) => parser.add_text(&text.xml10_content()),
            Event::GeneralRef(reference) => parser.reference(&reference)?,
            Event::Eof if is_empty || !parser.elements.is_empty() => {
                return Err(Fault::Malformed(
                    "the XML ends before its last element is closed".to_owned(),
                ));
            }
            Event::Eof => return Ok(()),
            _ => {}
        }
    }
}

/// Returns a reader of the file as text, by its byte order mark or declared encoding.
fn decoded<F: BufRead>(
    mut file: F,
) -> io::Result<DecodingReader<io::Chain<io::Cursor<Vec<u8>>, F>>> {
    let mut head = Vec::new();
    file.by_ref().take(HEAD).read_to_end(&mut head)?;
    let declaration = declaration(&head).map(|text| BytesStart::from_content(text, "xml".len()));
    let encoding = declaration.and_then(|start| BytesDecl::from_start(start).encoder());
    let encoding = encoding.filter(|encoding| encoding.is_ascii_compatible());
    let mut text = DecodingReader::new(io::Cursor::new(head).chain(file));
    if let Some(encoding) = encoding {
        text.set_encoding(encoding);
    }
    Ok(text)
}

/// Returns the contents of the XML declaration, if it is readable without knowing the encoding.
fn declaration(head: &[u8]) -> Option<String> {
    let rest = head.strip_prefix(b"<?")?;
    let end = rest.windows(2).position(|pair| pair == b"?>")?;
    let text = std::str::from_utf8(&rest[..end]).ok()?;
    text.starts_with("xml").then(|| text.to_owned())
}

/// Rejects documents with declarations of their own or in other files.
fn reject_declarations(doctype: &str) -> Result<(), Fault> {
    let declares = |word: &str| doctype.contains(word);
    if ["[", "SYSTEM", "PUBLIC", "ENTITY"].into_iter().any(declares) {
        let reason = "the XML contains a document type with declarations: remove it".to_owned();
        return Err(Fault::Refused { code: "doctype_refused", reason });
    }
    Ok(())
}

fn malformed(position: u64, error: &Error) -> Fault {
    Fault::Malformed(match error {
        Error::Io(_) => "the XML is incomplete or has invalid characters".to_owned(),
        error => format!("the XML is not well-formed near byte {position}: {error}"),
    })
}

/// Calls `handle` with the name and value of each attribute.
fn attributes(element: &BytesStart<'_>, mut handle: impl FnMut(&str, &str)) {
    for attribute in element.attributes().with_checks(false).flatten() {
        let value = attribute.normalized_value(XmlVersion::Implicit1_0);
        // A value with unknown entities is kept verbatim.
        let value = value.unwrap_or_else(|_| attribute.value.clone());
        handle(attribute.key.local_name().as_ref(), &value.replace('\0', "\u{fffd}"));
    }
}

impl<S: FnMut(Test) -> Result<(), Fault>> Parser<S> {
    fn open(&mut self, element: &BytesStart<'_>) -> Result<(), Fault> {
        let kind = Element::named(element.local_name().as_ref());
        if self.elements.is_empty() && !matches!(kind, Element::Suites | Element::Suite) {
            let reason = "the XML is not a JUnit report: its root must be testsuites or testsuite";
            return Err(Fault::Refused { code: "not_junit", reason: reason.to_owned() });
        }
        if self.elements.len() == DEEPEST {
            let reason = format!("the XML must not be nested more than {DEEPEST} elements deep");
            return Err(Fault::Refused { code: "too_deep", reason });
        }
        self.elements.push(kind);
        match kind {
            Element::Suite => self.suites.push(suite(element)),
            Element::Test => self.test = Some(self.test(element)),
            Element::Problem(kind) => {
                if let Some(test) = &mut self.test {
                    test.problems.push(problem(kind, element));
                }
            }
            Element::Skipped => {
                if let Some(test) = &mut self.test {
                    let reason = test.skipped.get_or_insert_default();
                    attributes(element, |name, value| {
                        if name == "message" {
                            keep_beginning(reason, value, MESSAGE);
                        }
                    });
                }
            }
            Element::Suites | Element::Output | Element::Other => {}
        }
        Ok(())
    }

    fn test(&self, element: &BytesStart<'_>) -> Test {
        let mut test = Test {
            suites: self.suites.iter().map(|suite| suite.name.clone()).collect(),
            start: self.suites.iter().rev().find_map(|suite| suite.start),
            ..Test::default()
        };
        attributes(element, |name, value| match (name, value) {
            ("classname", value) => keep_beginning(&mut test.class, value.trim(), MESSAGE),
            ("name", value) => keep_beginning(&mut test.name, value.trim(), MESSAGE),
            ("time", value) => test.seconds = seconds(value).unwrap_or_default(),
            ("timestamp", value) => test.start = time(value).or(test.start).filter(is_known),
            ("status", "notrun" | "disabled" | "skipped")
            | ("result", "suppressed" | "skipped") => test.skipped = Some(String::new()),
            _ => {}
        });
        test
    }

    fn close(&mut self) -> Result<(), Fault> {
        match self.elements.pop() {
            Some(Element::Suite) => _ = self.suites.pop(),
            Some(Element::Test) => {
                if let Some(test) = self.test.take() {
                    (self.sink)(test)?;
                }
            }
            Some(Element::Problem(_)) => {
                if let Some(test) = &mut self.test {
                    test.problems.truncate(MOST_PROBLEMS);
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Adds text to the innermost element that is not `Other`: a stack trace within a failure
    /// belongs to the failure.
    fn add_text(&mut self, more: &str) {
        let Some(test) = &mut self.test else { return };
        let innermost = self.elements.iter().rev().find(|kind| **kind != Element::Other);
        match innermost {
            Some(Element::Problem(_)) => {
                if let Some(problem) = test.problems.last_mut() {
                    keep_beginning(&mut problem.text, more, TEXT);
                }
            }
            Some(Element::Skipped) => {
                keep_beginning(test.skipped.get_or_insert_default(), more, MESSAGE);
            }
            Some(Element::Output) => keep_end(&mut test.output, more, OUTPUT),
            _ => {}
        }
    }

    fn reference(&mut self, reference: &BytesRef<'_>) -> Result<(), Fault> {
        let name = reference.xml10_content();
        if let Ok(Some(char)) = reference.resolve_char_ref() {
            self.add_text(char.encode_utf8(&mut [0; 4]));
        } else if let Some(text) = resolve_predefined_entity(&name) {
            self.add_text(text);
        } else {
            return Err(Fault::Malformed("the XML has an unknown entity".to_owned()));
        }
        Ok(())
    }
}

/// Returns whether a time is known. Tools write 1970-01-01 for tests that did not run.
fn is_known(time: &Timestamp) -> bool {
    time.0.timestamp() != 0
}

fn suite(element: &BytesStart<'_>) -> Suite {
    let mut suite = Suite::default();
    attributes(element, |name, value| match name {
        // Shortened because each of its tests has a copy.
        "name" => suite.name = shortened(value.trim()),
        "timestamp" => suite.start = time(value),
        _ => {}
    });
    suite
}

fn problem(kind: Kind, element: &BytesStart<'_>) -> Problem {
    let mut problem = Problem { kind, ..Problem::default() };
    attributes(element, |name, value| match name {
        "message" => keep_beginning(&mut problem.message, value, MESSAGE),
        "time" => problem.seconds = seconds(value),
        "type" if value == ABORTED => problem.kind.nature = Nature::Abortion,
        _ => {}
    });
    problem
}

/// Appends as much of `more` as fits.
fn keep_beginning(text: &mut String, more: &str, largest: usize) {
    let room = largest.saturating_sub(text.len());
    text.push_str(&more[..more.floor_char_boundary(room)].replace('\0', "\u{fffd}"));
}

/// Appends `more`, and removes the beginning if the text is too long.
fn keep_end(text: &mut String, more: &str, largest: usize) {
    let more = &more[more.ceil_char_boundary(more.len().saturating_sub(largest))..];
    text.push_str(&more.replace('\0', "\u{fffd}"));
    let excess = text.ceil_char_boundary(text.len().saturating_sub(largest));
    text.drain(..excess);
}
