//! Reads XML one event after the other, without recursion.

mod elements;
mod excess;
mod pieces;
mod references;

use std::io::BufRead;

use assay_proto::Fault;
use quick_xml::{
    Error, Reader,
    events::{BytesStart, Event},
};

pub(crate) use self::elements::{Elements, read_elements};
use self::{
    excess::Excess,
    pieces::{Pieces, Splitter},
    references::Half,
};
use crate::{
    decoded::Replaced,
    fault::{broken, truncated},
    limits::DEEPEST,
};

/// A reader of one format, which receives the parts of the document.
pub(crate) trait Document {
    /// Handles the start of an element. It is the last one of the path.
    fn open(&mut self, path: &Path, attributes: &Attributes<'_>) -> Result<(), Fault>;

    /// Handles a part of the text in the last element of the path.
    fn text(&mut self, path: &Path, text: &str);

    /// Handles the end of an element. It is the last one of the path.
    fn close(&mut self, path: &Path) -> Result<(), Fault>;
}

/// The names of the open elements, outermost first.
#[derive(Debug, Default)]
pub(crate) struct Path {
    names: String,
    /// Ends of the names in `names`.
    ends: Vec<usize>,
}

impl Path {
    fn push(&mut self, name: &str) {
        self.names.push_str(name);
        self.ends.push(self.names.len());
    }

    fn pop(&mut self) {
        self.ends.pop();
        self.names.truncate(self.ends.last().copied().unwrap_or_default());
    }

    /// Returns the number of open elements.
    pub(crate) fn depth(&self) -> usize {
        self.ends.len()
    }

    /// Returns the names of the open elements, innermost first.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        let start = |index: usize| if index == 0 { 0 } else { self.ends[index - 1] };
        (0..self.ends.len()).rev().map(move |index| &self.names[start(index)..self.ends[index]])
    }

    /// Returns the name of the innermost element.
    pub(crate) fn name(&self) -> &str {
        self.names().next().unwrap_or_default()
    }

    /// Returns the name of the element around the innermost one.
    pub(crate) fn parent(&self) -> &str {
        self.names().nth(1).unwrap_or_default()
    }
}

/// The attributes of an element, by their names without namespace.
pub(crate) struct Attributes<'a>(&'a BytesStart<'a>, &'a Replaced);

impl Attributes<'_> {
    /// Calls `handle` with the name and value of each attribute.
    pub(crate) fn each(&self, mut handle: impl FnMut(&str, &str)) {
        for attribute in self.0.attributes().with_checks(false).flatten() {
            let value = references::value(&attribute.value, self.1);
            handle(attribute.key.local_name().as_ref(), &value);
        }
    }

    /// Returns the value of an attribute.
    pub(crate) fn get(&self, name: &str) -> Option<String> {
        let mut found = None;
        self.each(|other, value| {
            if other == name && found.is_none() {
                found = Some(value.to_owned());
            }
        });
        found
    }
}

/// Parses a file of the format with this name. Characters that are replaced are added to `replaced`.
pub(crate) fn read(
    format: &str,
    file: impl BufRead,
    replaced: &Replaced,
    document: &mut impl Document,
) -> Result<(), Fault> {
    let mut reader = reader(file);
    let (mut path, mut buffer, mut is_empty) = (Path::default(), Vec::new(), true);
    let (mut half, mut resolved) = (Half::default(), String::new());
    loop {
        buffer.clear();
        let event = reader.read_event_into(&mut buffer);
        let event = event.map_err(|error| fault(format, &reader, &error))?;
        if let Event::GeneralRef(reference) = &event {
            half.resolve(reference, &mut resolved, replaced);
        } else {
            half.end(&mut resolved, replaced);
        }
        if !resolved.is_empty() {
            document.text(&path, &resolved);
            resolved.clear();
        }
        match event {
            Event::DocType(doctype) => reject_entities(&doctype)?,
            Event::Start(element) => {
                is_empty = false;
                if path.depth() == DEEPEST {
                    let reason =
                        format!("the XML must not be nested more than {DEEPEST} elements deep");
                    return Err(Fault::Refused { code: "too_deep", reason });
                }
                path.push(element.local_name().as_ref());
                document.open(&path, &Attributes(&element, replaced))?;
            }
            Event::End(_) => {
                document.close(&path)?;
                path.pop();
            }
            Event::Text(text) => document.text(&path, &text.xml10_content()),
            Event::CData(text) => document.text(&path, &text.xml10_content()),
            Event::Eof if is_empty || path.depth() > 0 => {
                return Err(truncated(format, &place(&reader, reader.buffer_position())));
            }
            Event::Eof => return Ok(()),
            _ => {}
        }
    }
}

/// Returns the name of the root element of a document of which this is the beginning.
pub(crate) fn root(head: &[u8]) -> Result<Option<String>, Fault> {
    let mut reader = reader(head);
    let mut buffer = Vec::new();
    loop {
        buffer.clear();
        match reader.read_event_into(&mut buffer) {
            Ok(Event::DocType(doctype)) => reject_entities(&doctype)?,
            Ok(Event::Start(element)) => {
                return Ok(Some(element.local_name().as_ref().to_owned()));
            }
            Ok(Event::Text(text)) if !text.trim().is_empty() => return Ok(None),
            Err(error) => match fault("XML", &reader, &error) {
                fault @ Fault::Refused { .. } => return Err(fault),
                _ => return Ok(None),
            },
            Ok(Event::Eof) => return Ok(None),
            Ok(_) => {}
        }
    }
}

/// Returns a reader of a document in UTF-8.
fn reader<F: BufRead>(file: F) -> Reader<Pieces<F>> {
    let mut reader = Reader::from_reader(Pieces::by(Splitter::default(), file));
    let config = reader.config_mut();
    config.expand_empty_elements = true;
    // Tools write texts such as `A & B` as they are.
    config.allow_dangling_amp = true;
    reader
}

/// Rejects documents with entities of their own or of other files. A document type without any is
/// ignored; its file is never fetched.
fn reject_entities(doctype: &str) -> Result<(), Fault> {
    let declares = |word: &str| doctype.contains(word);
    if ["<!ENTITY", "%"].into_iter().any(declares) {
        return Err(Excess::Entities.into());
    }
    Ok(())
}

/// Returns the line and column of a position in the output of the pieces.
fn place<F: BufRead>(reader: &Reader<Pieces<F>>, position: u64) -> String {
    let (line, column) = reader.get_ref().filter().place(position);
    format!("line {line}, column {column}")
}

fn fault<F: BufRead>(format: &str, reader: &Reader<Pieces<F>>, error: &Error) -> Fault {
    if let Error::Io(error) = error
        && let Some(excess) = error.get_ref().and_then(|error| error.downcast_ref::<Excess>())
    {
        return (*excess).into();
    }
    let place = place(reader, reader.error_position());
    match error {
        Error::Io(_) => broken(format, &place, "it is unreadable"),
        // A markup that does not end.
        Error::Syntax(_) => truncated(format, &place),
        error => broken(format, &place, format_args!("it is not well-formed: {error}")),
    }
}
