//! The part of a body around the current element.

use std::io::BufRead;

use assay_proto::Fault;
use serde_json::{Deserializer, value::RawValue};

/// Minimum size of a window in bytes, unless the body is shorter. Most elements are much smaller, so
/// that few are parsed twice because the window ended within them.
pub(super) const SIZE: usize = 256 << 10;

/// A window that moves over a body. Elements are parsed in place: a parser that reads byte by byte
/// takes several times as long.
pub(super) struct Window<B> {
    body: B,
    bytes: Vec<u8>,
    /// Index of the next byte to parse.
    at: usize,
    /// Whether the body ends with the window.
    is_last: bool,
    /// Line breaks before the window, and bytes between the last one of them and the window.
    before: (usize, usize),
}

impl<B: BufRead> Window<B> {
    pub(super) fn new(body: B) -> Self {
        Self { body, bytes: Vec::new(), at: 0, is_last: false, before: (0, 0) }
    }

    /// Returns the next byte that is not white space.
    pub(super) fn peek(&mut self) -> Result<Option<u8>, Fault> {
        loop {
            let is_blank = |byte: &u8| matches!(byte, b' ' | b'\n' | b'\r' | b'\t');
            let blank = self.bytes[self.at..].iter().take_while(|byte| is_blank(byte)).count();
            self.at += blank;
            match self.bytes.get(self.at) {
                None if !self.is_last => self.advance()?,
                next => return Ok(next.copied()),
            }
        }
    }

    /// Passes the byte that [`Window::peek`] has returned.
    pub(super) fn pass(&mut self) {
        self.at += 1;
    }

    /// Calls `handle` with the next value.
    pub(super) fn value(
        &mut self,
        handle: impl FnOnce(&RawValue) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        loop {
            let json = Deserializer::from_slice(&self.bytes[self.at..]);
            let mut values = json.into_iter::<&RawValue>();
            match values.next() {
                Some(Ok(value)) => {
                    let end = self.at + values.byte_offset();
                    // A number may continue after the window.
                    if end < self.bytes.len() || self.is_last {
                        self.at = end;
                        return handle(value);
                    }
                }
                Some(Err(error)) if self.is_last || !self.is_cut(&error) => {
                    return Err(self.malformed_at(error.line(), error.column()));
                }
                None if self.is_last => return Err(self.malformed()),
                _ => {}
            }
            self.advance()?;
        }
    }

    /// Whether an error may only be that the window ends. The end of a number such as `0.` is an
    /// error like any other to the parser.
    fn is_cut(&self, error: &serde_json::Error) -> bool {
        let rest = || self.bytes[self.at..].split(|byte| *byte == b'\n');
        let is_at_end = || {
            let column = rest().next_back().map_or(0, <[u8]>::len);
            (error.line(), error.column()) == (rest().count(), column)
        };
        error.is_eof() || is_at_end()
    }

    /// Returns the error that the next byte is not valid, or missing.
    pub(super) fn malformed(&self) -> Fault {
        self.malformed_at(1, 1)
    }

    /// Returns the error for a line and a column, counted from the next byte.
    fn malformed_at(&self, line: usize, column: usize) -> Fault {
        let (lines, columns) = self.position();
        let column = if line == 1 { columns + column } else { column };
        let line = lines + line;
        Fault::Malformed(format!("the body is not valid JSON: see line {line}, column {column}"))
    }

    /// Returns the number of line breaks before the next byte, and of the bytes after the last one.
    fn position(&self) -> (usize, usize) {
        let passed = || self.bytes[..self.at].split(|byte| *byte == b'\n');
        let last = passed().next_back().map_or(0, <[u8]>::len);
        match passed().count() - 1 {
            0 => (self.before.0, self.before.1 + last),
            lines => (self.before.0 + lines, last),
        }
    }

    /// Drops the parsed bytes, and reads more: at least as many as are left, so that a long element is
    /// read in few steps.
    fn advance(&mut self) -> Result<(), Fault> {
        self.before = self.position();
        self.bytes.drain(..self.at);
        self.at = 0;
        let size = SIZE.max(2 * self.bytes.len());
        while self.bytes.len() < size {
            let part = self.body.fill_buf().map_err(Fault::internal)?;
            let length = part.len();
            self.is_last = length == 0;
            if self.is_last {
                break;
            }
            self.bytes.extend_from_slice(part);
            self.body.consume(length);
        }
        Ok(())
    }
}
