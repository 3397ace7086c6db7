//! Bounds the size of what the XML parser holds in memory at once, which is an element with its
//! attributes, or a text.
//!
//! Long texts are split by empty comments, and long CDATA sections into several. Comments lose
//! their contents, and long attributes their ends, of which no more than a message is kept anyway.

use std::io;

use memchr::{memchr, memchr_iter, memchr2, memchr3, memrchr};

use super::excess::{DECLARATION, ELEMENT, Excess};
use crate::{
    filtered::{Filter, Filtered, INPUT},
    names::Hash,
};

/// Size of the pieces that texts are split into, in bytes.
const PIECE: usize = 16 << 10;

/// Maximum size of the value of an attribute, in bytes. Readers keep a message of it.
const VALUE: usize = 32 << 10;

/// Maximum size of a reference that is not cut at the end of a value, in bytes.
const LONGEST_REFERENCE: usize = 16;

/// Part of the document that the next byte belongs to.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Part {
    /// Text, or an entity in it.
    Text {
        in_reference: bool,
    },
    /// `<` and as many further bytes as are needed to know what begins.
    Start,
    /// An element, in the value of an attribute with this quote.
    Element {
        quote: Option<u8>,
    },
    Comment,
    /// A CDATA section.
    Data,
    Instruction,
    /// A document type, or the declarations in it.
    Declaration {
        in_subset: bool,
    },
}

/// A document in pieces.
pub(super) type Pieces<R> = Filtered<R, Splitter>;

/// Splits a document into pieces.
pub(super) struct Splitter {
    part: Part,
    /// Number of bytes of the current piece, value, element or declaration.
    size: usize,
    /// Number of bytes of the current element without its excess.
    element: usize,
    /// Last bytes of the current part, as many as are needed to recognize its end or start.
    last: [u8; 2],
    start: Vec<u8>,
    /// Hash of the end of the current value, which is dropped.
    cut: Option<Hash>,
    /// Position of an open reference in the current value, or 0.
    reference: usize,
    output: Vec<u8>,
    /// Position of the output in that of the whole file, and its line and column in the file.
    begin: u64,
    line: u64,
    column: u64,
}

impl Default for Splitter {
    fn default() -> Self {
        Self {
            part: Part::Text { in_reference: false },
            size: 0,
            element: 0,
            last: [0; 2],
            start: Vec::new(),
            cut: None,
            reference: 0,
            output: Vec::with_capacity(INPUT),
            begin: 0,
            line: 1,
            column: 1,
        }
    }
}

impl Splitter {
    /// Returns the line and column of a position in the output, from 1. Of one that was consumed long
    /// ago, those of the next one.
    pub(super) fn place(&self, position: u64) -> (u64, u64) {
        let before = position.saturating_sub(self.begin);
        let before = usize::try_from(before).unwrap_or(usize::MAX).min(self.output.len());
        after(&self.output[..before], self.line, self.column)
    }

    fn begin(&mut self, part: Part) {
        (self.part, self.size, self.last) = (part, 0, [0; 2]);
        (self.cut, self.reference) = (None, 0);
    }

    /// Returns whether a byte belongs to a reference in a value, such as `&quot;`.
    fn is_reference(&self, byte: u8) -> bool {
        byte != b'&' && self.reference > 0 && self.size - self.reference < LONGEST_REFERENCE
    }

    fn insert(&mut self, separator: &[u8]) {
        self.output.extend_from_slice(separator);
        self.size = 0;
    }

    /// Returns the number of bytes that are added as they are, and begin and end nothing.
    fn run(&self, input: &[u8]) -> usize {
        let (end, room) = match self.part {
            Part::Text { in_reference: false } => {
                (memchr2(b'<', b'&', input), PIECE.saturating_sub(self.size))
            }
            Part::Element { quote: None } => {
                (memchr3(b'"', b'\'', b'>', input), ELEMENT.saturating_sub(self.element))
            }
            Part::Element { quote: Some(quote) } if self.cut.is_none() && self.reference == 0 => {
                let room = VALUE.saturating_sub(self.size);
                (memchr2(quote, b'&', input), room.min(ELEMENT.saturating_sub(self.element)))
            }
            Part::Data => (memchr(b'>', input), PIECE.saturating_sub(self.size)),
            _ => return 0,
        };
        end.unwrap_or(input.len()).min(room)
    }

    /// Adds one byte of the file to the output.
    fn add(&mut self, byte: u8) -> Result<(), Excess> {
        // UTF-8 characters are not split.
        let is_boundary = !(0x80..0xc0).contains(&byte);
        self.size += 1;
        match self.part {
            Part::Text { in_reference } => {
                if byte == b'<' {
                    self.start.clear();
                    self.part = Part::Start;
                } else if in_reference && (byte == b';' || byte.is_ascii_whitespace()) {
                    self.begin(Part::Text { in_reference: false });
                } else if in_reference && self.size > DECLARATION {
                    return Err(Excess::Reference);
                } else if byte == b'&' {
                    self.begin(Part::Text { in_reference: true });
                } else if !in_reference && self.size > PIECE && is_boundary {
                    self.insert(b"<!---->");
                }
                self.output.push(byte);
            }
            Part::Start => self.start(byte),
            Part::Element { quote } => self.element(byte, quote, is_boundary)?,
            Part::Comment => {
                let is_end = byte == b'>' && self.last == *b"--" && self.size > 2;
                if is_end {
                    self.output.extend_from_slice(b"-->");
                    self.begin(Part::Text { in_reference: false });
                } else if byte == b'\n' {
                    // Places in the file are lines.
                    self.output.push(byte);
                }
            }
            Part::Data => {
                let is_end = byte == b'>' && self.last == *b"]]";
                if self.size > PIECE && is_boundary && self.last[1] != b']' {
                    self.insert(b"]]><![CDATA[");
                }
                self.output.push(byte);
                if is_end {
                    self.begin(Part::Text { in_reference: false });
                }
            }
            Part::Instruction => {
                let is_end = byte == b'>' && self.last[1] == b'?';
                if is_end && self.size > DECLARATION {
                    self.output.extend_from_slice(b"?>");
                } else if self.size <= DECLARATION {
                    self.output.push(byte);
                }
                if is_end {
                    self.begin(Part::Text { in_reference: false });
                }
            }
            Part::Declaration { in_subset } => {
                self.output.push(byte);
                if self.size > DECLARATION {
                    return Err(Excess::Declarations);
                }
                match byte {
                    b'[' | b']' => self.part = Part::Declaration { in_subset: byte == b'[' },
                    b'>' if !in_subset => self.begin(Part::Text { in_reference: false }),
                    _ => {}
                }
            }
        }
        self.last = [self.last[1], byte];
        Ok(())
    }

    /// Adds a byte after `<`, which may decide what begins.
    fn start(&mut self, byte: u8) {
        const COMMENT: &[u8] = b"!--";
        const DATA: &[u8] = b"![CDATA[";
        self.output.push(byte);
        self.start.push(byte);
        if self.start == COMMENT {
            self.begin(Part::Comment);
        } else if self.start == DATA {
            self.begin(Part::Data);
        } else if COMMENT.starts_with(&self.start) || DATA.starts_with(&self.start) {
            // The next byte decides.
        } else if byte == b'>' {
            self.begin(Part::Text { in_reference: false });
        } else {
            let part = match self.start[0] {
                b'?' => Part::Instruction,
                b'!' => Part::Declaration { in_subset: false },
                _ => Part::Element { quote: None },
            };
            self.element = 0;
            self.begin(part);
        }
    }

    /// Adds a byte of an element, unless it belongs to the end of a long value.
    fn element(&mut self, byte: u8, quote: Option<u8>, is_boundary: bool) -> Result<(), Excess> {
        match (quote, byte) {
            (None, b'"' | b'\'') => self.begin(Part::Element { quote: Some(byte) }),
            (None, b'>') => self.begin(Part::Text { in_reference: false }),
            (Some(quote), byte) if quote == byte => {
                // Names that are cut stay different.
                if let Some(cut) = self.cut {
                    self.output.extend_from_slice(cut.mark().as_bytes());
                }
                self.begin(Part::Element { quote: None });
            }
            // The value ends in front of a character that does not belong to a reference.
            (Some(_), _)
                if self.cut.is_some()
                    || (self.size > VALUE && is_boundary && !self.is_reference(byte)) =>
            {
                self.cut.get_or_insert_default().add(&[byte]);
                return Ok(());
            }
            (Some(_), b'&') => self.reference = self.size,
            (Some(_), b';') => self.reference = 0,
            _ => {}
        }
        self.element += 1;
        if self.element > ELEMENT {
            return Err(Excess::Element);
        }
        self.output.push(byte);
        Ok(())
    }
}

/// Returns the line and column after a text that begins at these.
fn after(text: &[u8], line: u64, column: u64) -> (u64, u64) {
    let lines = memchr_iter(b'\n', text).count() as u64;
    match memrchr(b'\n', text) {
        Some(end) => (line + lines, (text.len() - end) as u64),
        None => (line, column + text.len() as u64),
    }
}

impl Filter for Splitter {
    fn extend(&mut self, mut input: &[u8]) -> io::Result<()> {
        while let [byte, ..] = input {
            let run = self.run(input);
            if run == 0 {
                self.add(*byte)
                    .map_err(|excess| io::Error::new(io::ErrorKind::InvalidData, excess))?;
                input = &input[1..];
                continue;
            }
            let (same, rest) = input.split_at(run);
            self.output.extend_from_slice(same);
            self.size += run;
            if matches!(self.part, Part::Element { .. }) {
                self.element += run;
            }
            self.last = match *same {
                [.., before, last] => [before, last],
                _ => [self.last[1], *byte],
            };
            input = rest;
        }
        Ok(())
    }

    fn end(&mut self) {}

    fn output(&self) -> &[u8] {
        &self.output
    }

    fn clear(&mut self) {
        (self.line, self.column) = after(&self.output, self.line, self.column);
        self.begin += self.output.len() as u64;
        self.output.clear();
    }
}
