//! Makes JSON that a parser accepts of JSON as tools write it, and bounds the size of what the parser
//! holds in memory at once, which is a text.
//!
//! JavaScript writes halves of characters for texts that were cut within one, Python writes `NaN`, and
//! shells write control characters. These cost the character or the number, not the file.

use std::{cell::Cell, io, rc::Rc};

use assay_proto::Fault;

use crate::{
    decoded::{REPLACEMENT, Replaced},
    filtered::{Filter, Filtered},
    limits::{DEEPEST, INLINE},
    names::Hash,
};

/// Maximum size of a text, in bytes: the largest attachment that is kept, as a URL in Base64. Longer
/// ones lose their ends.
const TEXT: usize = INLINE / 3 * 4 + 512;

/// Maximum size of the texts of a test with all of its attempts, in bytes. Further ones are cut to
/// [`SHORT`].
const TEXTS: usize = 8 << 20;

/// Maximum size of further texts, in bytes.
const SHORT: usize = 256;

/// Maximum size of a number, in bytes. Longer ones are unknown.
const NUMBER: usize = 256;

/// Part of a document that the next byte belongs to.
#[derive(Clone, Copy)]
enum Part {
    Structure,
    /// A number, or a word such as `true`.
    Word,
    /// A text.
    Text,
    /// An escape in a text, after the backslash.
    Escape,
    /// An escape by code, with the number of digits so far and their value.
    Code(u8, u32),
}

/// Size of the texts since the last test, in bytes.
pub(super) type Kept = Rc<Cell<usize>>;

/// JSON whose texts are not longer than the limit and which is not nested too deeply.
pub(crate) type Lenient<R> = Filtered<R, Corrector>;

/// Makes JSON that a parser accepts.
pub(crate) struct Corrector {
    part: Part,
    depth: usize,
    /// Size of the current text in bytes, and its limit.
    size: usize,
    largest: usize,
    /// Hash of the end that the current text loses.
    lost: Option<Hash>,
    kept: Kept,
    /// The number or word.
    word: Vec<u8>,
    /// Code of the first half of a character, whose second half may follow.
    half: Option<u32>,
    replaced: Replaced,
    output: Vec<u8>,
}

/// Returns the fault of a document that is nested too deeply.
pub(super) fn too_deep() -> Fault {
    let reason = format!("the JSON must not be nested more than {DEEPEST} levels deep");
    Fault::Refused { code: "too_deep", reason }
}

impl<R> Lenient<R> {
    pub(crate) fn new(source: R, replaced: Replaced) -> Self {
        Self::by(Corrector::new(replaced), source)
    }

    /// Returns the size of the texts, which the reader resets after each test.
    pub(super) fn kept(&self) -> Kept {
        Rc::clone(&self.filter().kept)
    }
}

impl Corrector {
    fn new(replaced: Replaced) -> Self {
        Self {
            part: Part::Structure,
            depth: 0,
            size: 0,
            largest: TEXT,
            lost: None,
            kept: Kept::default(),
            word: Vec::new(),
            half: None,
            replaced,
            output: Vec::new(),
        }
    }

    fn open_text(&mut self) {
        (self.part, self.size, self.half, self.lost) = (Part::Text, 0, None, None);
        self.largest = if self.kept.get() > TEXTS { SHORT } else { TEXT };
    }

    /// Returns the number of bytes that are added as they are, and begin and end nothing.
    fn run(&self, input: &[u8]) -> usize {
        if !matches!(self.part, Part::Text) || self.lost.is_some() || self.half.is_some() {
            return 0;
        }
        let is_special = |byte: &u8| matches!(byte, 0..0x20 | b'"' | b'\\');
        let end = input.iter().position(is_special).unwrap_or(input.len());
        end.min(self.largest.saturating_sub(self.size))
    }

    /// Adds one byte of the file to the output. Returns whether it is nested too deeply.
    fn add(&mut self, byte: u8) -> bool {
        match self.part {
            Part::Structure => return self.structure(byte),
            Part::Word => {
                let continues = byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
                if !continues {
                    self.end_word();
                    return self.structure(byte);
                }
                if self.word.len() <= NUMBER {
                    self.word.push(byte);
                }
            }
            // A line never ends within a text, so that a broken line does not affect others.
            Part::Text if matches!(byte, b'"' | b'\n') => self.close_text(byte),
            Part::Text if byte == b'\\' => self.part = Part::Escape,
            Part::Text => self.char(byte),
            Part::Escape if byte == b'u' => self.part = Part::Code(0, 0),
            Part::Escape => {
                self.part = Part::Text;
                match byte {
                    b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => {
                        self.whole(&[b'\\', byte]);
                    }
                    // Shells escape quotes and colours in ways that JSON does not have.
                    _ => {
                        self.whole(b"\\\\");
                        return self.add(byte);
                    }
                }
            }
            Part::Code(count, code) => match char::from(byte).to_digit(16) {
                Some(digit) if count == 3 => {
                    self.part = Part::Text;
                    self.code(code << 4 | digit);
                }
                Some(digit) => self.part = Part::Code(count + 1, code << 4 | digit),
                None => {
                    self.part = Part::Text;
                    self.replace();
                    return self.add(byte);
                }
            },
        }
        false
    }

    fn structure(&mut self, byte: u8) -> bool {
        self.part = Part::Structure;
        match byte {
            b'"' => self.open_text(),
            b'{' | b'[' => self.depth += 1,
            b'}' | b']' => {
                self.depth = self.depth.saturating_sub(1);
                if self.depth == 0 {
                    self.kept.set(0);
                }
            }
            b'-' | b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' => {
                self.part = Part::Word;
                self.word.clear();
                self.word.push(byte);
                return false;
            }
            _ => {}
        }
        self.output.push(byte);
        self.depth > DEEPEST
    }

    /// Writes a word. Numbers that are out of range or none at all are unknown.
    fn end_word(&mut self) {
        let text = std::str::from_utf8(&self.word).unwrap_or_default();
        let is_unknown = match text.trim_start_matches('-') {
            "NaN" | "nan" | "Infinity" | "inf" | "undefined" | "None" => true,
            _ if text.len() > NUMBER => true,
            _ => text.parse::<f64>().is_ok_and(f64::is_infinite),
        };
        if is_unknown {
            self.output.extend_from_slice(b"null");
        } else {
            self.output.append(&mut self.word);
        }
    }

    fn close_text(&mut self, byte: u8) {
        self.end_half();
        if let Some(lost) = self.lost.take() {
            self.output.extend_from_slice(lost.mark().as_bytes());
        }
        self.kept.set(self.kept.get() + self.size);
        (self.part, self.size) = (Part::Structure, 0);
        self.output.push(byte);
    }

    /// Adds a byte of a character.
    fn char(&mut self, byte: u8) {
        self.end_half();
        let is_boundary = !(0x80..0xc0).contains(&byte);
        if self.size >= self.largest && is_boundary {
            self.lost.get_or_insert_default();
        }
        match (&mut self.lost, byte) {
            (Some(lost), byte) => lost.add(&[byte]),
            (None, 0..0x20) => self.output.extend_from_slice(format!("\\u{byte:04x}").as_bytes()),
            (None, byte) => self.output.push(byte),
        }
        self.size += 1;
    }

    /// Adds an escape or a character as a whole.
    fn whole(&mut self, text: &[u8]) {
        self.end_half();
        if self.size >= self.largest {
            self.lost.get_or_insert_default();
        }
        match &mut self.lost {
            Some(lost) => lost.add(text),
            None => self.output.extend_from_slice(text),
        }
        self.size += text.len();
    }

    /// Adds an escape by code.
    fn code(&mut self, code: u32) {
        match (self.half.take(), code) {
            (Some(half), 0xdc00..0xe000) => {
                self.whole(format!("\\u{half:04x}\\u{code:04x}").as_bytes());
            }
            (half, code) => {
                if half.is_some() {
                    self.replace();
                }
                match code {
                    0xd800..0xdc00 => self.half = Some(code),
                    0xdc00..0xe000 | 0 => self.replace(),
                    code => self.whole(format!("\\u{code:04x}").as_bytes()),
                }
            }
        }
    }

    /// Replaces the first half of a character without a second one.
    fn end_half(&mut self) {
        if self.half.take().is_some() {
            self.replace();
        }
    }

    fn replace(&mut self) {
        self.half = None;
        self.replaced.add(1);
        self.whole(REPLACEMENT.as_bytes());
    }
}

impl Filter for Corrector {
    fn extend(&mut self, mut input: &[u8]) -> io::Result<()> {
        while let [byte, ..] = input {
            let run = self.run(input);
            self.output.extend_from_slice(&input[..run]);
            self.size += run;
            input = &input[run..];
            if run == 0 {
                if self.add(*byte) {
                    return Err(io::ErrorKind::InvalidData.into());
                }
                input = &input[1..];
            }
        }
        Ok(())
    }

    fn end(&mut self) {
        if matches!(self.part, Part::Word) {
            self.end_word();
            self.part = Part::Structure;
        }
    }

    fn output(&self) -> &[u8] {
        &self.output
    }

    fn clear(&mut self) {
        self.output.clear();
    }
}

#[cfg(test)]
mod tests;
