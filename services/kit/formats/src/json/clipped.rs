//! Bounds the size of what a JSON parser holds in memory at once, which is a text.

use std::{
    cell::Cell,
    io::{self, BufRead, Read},
    rc::Rc,
};

use assay_proto::Fault;

use crate::limits::{DEEPEST, INLINE};

/// Maximum size of a text, in bytes: the largest attachment that is kept, as a URL in Base64. Longer ones lose
/// their ends.
const TEXT: usize = INLINE / 3 * 4 + 512;

/// Maximum size of the texts of a test with all of its attempts, in bytes. Further ones are cut to
/// [`SHORT`].
const TEXTS: usize = 8 << 20;

/// Maximum size of further texts, in bytes.
const SHORT: usize = 256;

/// Size of the output that is produced at once, in bytes.
const OUTPUT: usize = 16 << 10;

/// Part of a document that the next byte belongs to.
#[derive(Clone, Copy)]
enum Part {
    Structure,
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
pub(crate) struct Clipped<R> {
    source: R,
    part: Part,
    depth: usize,
    /// Size of the current text in bytes, and its limit.
    size: usize,
    largest: usize,
    kept: Kept,
    /// Whether the last escape is the first half of a character.
    is_half: bool,
    input: Vec<u8>,
    output: Vec<u8>,
    consumed: usize,
}

/// Returns the fault of a document that is nested too deeply.
pub(super) fn too_deep() -> Fault {
    let reason = format!("the JSON must not be nested more than {DEEPEST} levels deep");
    Fault::Refused { code: "too_deep", reason }
}

impl<R: BufRead> Clipped<R> {
    pub(crate) fn new(source: R) -> Self {
        Self {
            source,
            part: Part::Structure,
            depth: 0,
            size: 0,
            largest: TEXT,
            kept: Kept::default(),
            is_half: false,
            input: Vec::new(),
            output: Vec::new(),
            consumed: 0,
        }
    }

    /// Returns the size of the texts, which the reader resets after each test.
    pub(super) fn kept(&self) -> Kept {
        Rc::clone(&self.kept)
    }

    fn open_text(&mut self) {
        (self.part, self.size, self.is_half) = (Part::Text, 0, false);
        self.largest = if self.kept.get() > TEXTS { SHORT } else { TEXT };
    }

    /// Adds one byte of the file to the output. Returns whether it is nested too deeply.
    fn add(&mut self, byte: u8) -> bool {
        let is_clipped = self.size > self.largest;
        match self.part {
            Part::Structure => {
                match byte {
                    b'"' => self.open_text(),
                    b'{' | b'[' => self.depth += 1,
                    b'}' | b']' => {
                        self.depth = self.depth.saturating_sub(1);
                        if self.depth == 0 {
                            self.kept.set(0);
                        }
                    }
                    _ => {}
                }
                self.output.push(byte);
                return self.depth > DEEPEST;
            }
            // A line never ends within a text, so that a broken line does not affect others.
            Part::Text if matches!(byte, b'"' | b'\n') => {
                self.kept.set(self.kept.get() + self.size);
                (self.part, self.size) = (Part::Structure, 0);
                self.output.push(byte);
                return false;
            }
            Part::Text if is_clipped => {
                self.part = if byte == b'\\' { Part::Escape } else { Part::Text };
                return false;
            }
            Part::Text => {
                let is_boundary = !(0x80..0xc0).contains(&byte);
                if self.size >= self.largest && is_boundary && !self.is_half {
                    // The text ends in front of this character.
                    self.size = self.largest + 1;
                    return self.add(byte);
                }
                if byte == b'\\' {
                    self.part = Part::Escape;
                } else {
                    self.is_half = false;
                }
            }
            Part::Escape => {
                self.part = if byte == b'u' { Part::Code(0, 0) } else { Part::Text };
                self.is_half = false;
            }
            Part::Code(count, code) => {
                let code = code << 4 | char::from(byte).to_digit(16).unwrap_or_default();
                self.part = if count == 3 { Part::Text } else { Part::Code(count + 1, code) };
                self.is_half = count == 3 && (0xd800..0xdc00).contains(&code);
            }
        }
        if !is_clipped {
            // Sizes stay below the limit until the text is cut at the start of a character.
            self.size = (self.size + 1).min(self.largest);
            self.output.push(byte);
        }
        false
    }
}

impl<R: BufRead> BufRead for Clipped<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        while self.consumed == self.output.len() {
            self.output.clear();
            self.consumed = 0;
            let mut input = std::mem::take(&mut self.input);
            input.clear();
            let available = self.source.fill_buf()?;
            input.extend_from_slice(&available[..available.len().min(OUTPUT)]);
            self.source.consume(input.len());
            for byte in &input {
                if self.add(*byte) {
                    return Err(io::ErrorKind::InvalidData.into());
                }
            }
            let is_end = input.is_empty();
            self.input = input;
            if is_end {
                break;
            }
        }
        Ok(&self.output[self.consumed..])
    }

    fn consume(&mut self, amount: usize) {
        self.consumed += amount;
    }
}

impl<R: BufRead> Read for Clipped<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.fill_buf()?.read(buffer)?;
        self.consume(read);
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clipped(json: &str) -> String {
        io::read_to_string(Clipped::new(json.as_bytes())).unwrap()
    }

    #[test]
    fn long_texts_lose_their_ends() {
        for unit in ["a", "ä", "🙂", "\\n", "\\\"", "\\u00e4", "\\ud83d\\ude42"] {
            let json = format!(r#"{{"a": "{}", "b": [1, "x"]}}"#, unit.repeat(TEXT));
            let clipped = clipped(&json);
            assert!(clipped.len() < TEXT + 64, "{unit}: {}", clipped.len());
            let value: serde_json::Value = serde_json::from_str(&clipped).unwrap();
            assert_eq!(value["b"][1], "x", "{unit}");
            assert!(value["a"].as_str().unwrap().len() > TEXT / 8, "{unit}");
        }
    }

    #[test]
    fn other_documents_stay_as_they_are() {
        for json in [r#"{"a\\": "b\"", "c": [1, {"d": null}]}"#, "", "\"open", "a \"b\n[\"c\"]"] {
            assert_eq!(clipped(json), json);
        }
        let deep = "[".repeat(DEEPEST + 1);
        assert!(io::read_to_string(Clipped::new(deep.as_bytes())).is_err());
    }
}
