//! Reads XML one event after the other, without recursion.

mod elements;
mod pieces;

use std::io::{self, BufRead, Read};

use assay_proto::Fault;
use quick_xml::{
    Error, Reader, XmlVersion,
    encoding::DecodingReader,
    escape::resolve_predefined_entity,
    events::{BytesDecl, BytesRef, BytesStart, Event},
};

pub(crate) use self::elements::{Elements, read_elements};
use self::pieces::{Excess, Pieces};
use crate::{fault::broken, limits::DEEPEST, texts::storable};

/// Size of the beginning of a file that is searched for its encoding, in bytes.
const HEAD: u64 = 512;

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
pub(crate) struct Attributes<'a>(&'a BytesStart<'a>);

impl Attributes<'_> {
    /// Calls `handle` with the name and value of each attribute.
    pub(crate) fn each(&self, mut handle: impl FnMut(&str, &str)) {
        for attribute in self.0.attributes().with_checks(false).flatten() {
            let value = attribute.normalized_value(XmlVersion::Implicit1_0);
            // A value with unknown entities is kept verbatim.
            let value = value.unwrap_or_else(|_| attribute.value.clone());
            handle(attribute.key.local_name().as_ref(), &storable(&value));
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

/// Parses a file of the format with this name.
pub(crate) fn read(
    format: &str,
    file: impl BufRead,
    document: &mut impl Document,
) -> Result<(), Fault> {
    let mut parser = Parser::new(format, file)?;
    let (mut path, mut buffer, mut is_empty) = (Path::default(), Vec::new(), true);
    loop {
        buffer.clear();
        let event = parser.reader.read_event_into(&mut buffer);
        match event.map_err(|error| fault(format, &parser.reader, &error))? {
            Event::DocType(doctype) => reject_declarations(&doctype)?,
            Event::Start(element) => {
                is_empty = false;
                if path.depth() == DEEPEST {
                    let reason =
                        format!("the XML must not be nested more than {DEEPEST} elements deep");
                    return Err(Fault::Refused { code: "too_deep", reason });
                }
                path.push(element.local_name().as_ref());
                document.open(&path, &Attributes(&element))?;
            }
            Event::End(_) => {
                document.close(&path)?;
                path.pop();
            }
            Event::Text(text) => document.text(&path, &text.xml10_content()),
            Event::CData(text) => document.text(&path, &text.xml10_content()),
            Event::GeneralRef(reference) => {
                let Some(text) = resolved(&reference) else {
                    let place = format!("near byte {}", parser.reader.buffer_position());
                    return Err(broken(format, &place, "it has an unknown entity"));
                };
                document.text(&path, &text);
            }
            Event::Eof if is_empty || path.depth() > 0 => {
                return Err(broken(
                    format,
                    "at its end",
                    "it ends before its last element is closed",
                ));
            }
            Event::Eof => return Ok(()),
            _ => {}
        }
    }
}

/// Returns the name of the root element of a document of which this is the beginning.
pub(crate) fn root(head: &[u8]) -> Result<Option<String>, Fault> {
    let mut parser = Parser::new("XML", head)?;
    let mut buffer = Vec::new();
    loop {
        buffer.clear();
        match parser.reader.read_event_into(&mut buffer) {
            Ok(Event::DocType(doctype)) => reject_declarations(&doctype)?,
            Ok(Event::Start(element)) => {
                return Ok(Some(element.local_name().as_ref().to_owned()));
            }
            Ok(Event::Text(text)) if !text.trim().is_empty() => return Ok(None),
            Err(error) => match fault("XML", &parser.reader, &error) {
                fault @ Fault::Refused { .. } => return Err(fault),
                _ => return Ok(None),
            },
            Ok(Event::Eof) => return Ok(None),
            Ok(_) => {}
        }
    }
}

type Decoded<F> = Pieces<DecodingReader<io::Chain<io::Cursor<Vec<u8>>, F>>>;

struct Parser<F: BufRead> {
    reader: Reader<Decoded<F>>,
}

impl<F: BufRead> Parser<F> {
    fn new(format: &str, file: F) -> Result<Self, Fault> {
        let text = decoded(file).map_err(|error| broken(format, "near byte 0", &error))?;
        let mut reader = Reader::from_reader(Pieces::new(text));
        reader.config_mut().expand_empty_elements = true;
        Ok(Self { reader })
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
        return Err(Excess::Declarations.into());
    }
    Ok(())
}

/// Returns the text of a character reference or of a predefined entity.
fn resolved(reference: &BytesRef<'_>) -> Option<String> {
    if let Ok(Some(char)) = reference.resolve_char_ref() {
        return Some(char.to_string());
    }
    resolve_predefined_entity(&reference.xml10_content()).map(ToOwned::to_owned)
}

/// Returns the position of an error in the file, in bytes.
fn position<F: BufRead>(reader: &Reader<Decoded<F>>) -> u64 {
    reader.error_position().saturating_add_signed(reader.get_ref().shift())
}

fn fault<F: BufRead>(format: &str, reader: &Reader<Decoded<F>>, error: &Error) -> Fault {
    if let Error::Io(error) = error
        && let Some(excess) = error.get_ref().and_then(|error| error.downcast_ref::<Excess>())
    {
        return (*excess).into();
    }
    let place = format!("near byte {}", position(reader));
    match error {
        Error::Io(_) => broken(format, &place, "it is incomplete or has invalid characters"),
        error => broken(format, &place, format_args!("it is not well-formed: {error}")),
    }
}
