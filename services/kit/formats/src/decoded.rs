//! Decodes files: text in any encoding becomes UTF-8, and what is not text becomes U+FFFD.
//!
//! XML, JSON and TAP are read through this one decoder, so that all formats tolerate the same
//! encodings and the same damage.

use std::{
    cell::Cell,
    io::{self, BufRead, Read},
    rc::Rc,
};

use encoding_rs::{Decoder, DecoderResult, Encoding, UTF_8, UTF_16BE, UTF_16LE};
use memchr::memchr;

/// Size of the output that is produced at once, in bytes.
const OUTPUT: usize = 16 << 10;

/// Maximum size of an XML declaration, in bytes.
const DECLARATION: usize = 512;

/// Replacement of a character that cannot be stored.
pub(crate) const REPLACEMENT: &str = "\u{fffd}";

/// Number of characters of a file that were replaced.
#[derive(Clone, Debug, Default)]
pub struct Replaced(Rc<Cell<usize>>);

impl Replaced {
    pub(crate) fn add(&self, characters: usize) {
        self.0.set(self.0.get().saturating_add(characters));
    }

    pub(crate) fn count(&self) -> usize {
        self.0.get()
    }
}

/// Returns the encoding of a file that starts like this: by its byte order mark, its NUL bytes or its
/// XML declaration. Without any, it is UTF-8.
pub(crate) fn encoding_of(head: &[u8]) -> &'static Encoding {
    if let Some((encoding, _)) = Encoding::for_bom(head) {
        return encoding;
    }
    match head {
        // Reports begin with an ASCII character.
        [0, 1..=255, 0, 1..=255, ..] => UTF_16BE,
        [1..=255, 0, 1..=255, 0, ..] => UTF_16LE,
        _ => declared(head).filter(|encoding| encoding.is_ascii_compatible()).unwrap_or(UTF_8),
    }
}

/// Returns the encoding that an XML declaration names.
fn declared(head: &[u8]) -> Option<&'static Encoding> {
    let rest = head.strip_prefix(b"<?xml")?;
    let rest = &rest[..rest.len().min(DECLARATION)];
    let end = rest.windows(2).position(|pair| pair == b"?>")?;
    let text = std::str::from_utf8(&rest[..end]).ok()?;
    let (_, value) = text.split_once("encoding")?;
    let value = value.trim_start().strip_prefix('=')?.trim_start();
    let quote = value.chars().next().filter(|quote| ['"', '\''].contains(quote))?;
    Encoding::for_label(value[1..].split(quote).next()?.as_bytes())
}

/// A file as UTF-8 without NUL characters, which PostgreSQL cannot store.
pub(crate) struct Decoded<R> {
    source: R,
    decoder: Decoder,
    replaced: Replaced,
    output: Box<[u8]>,
    /// End of the output that was produced, and of the part that was consumed.
    filled: usize,
    consumed: usize,
    is_end: bool,
}

impl<R: BufRead> Decoded<R> {
    pub(crate) fn new(source: R, encoding: &'static Encoding, replaced: Replaced) -> Self {
        let decoder = encoding.new_decoder_with_bom_removal();
        let output = vec![0; OUTPUT].into_boxed_slice();
        Self { source, decoder, replaced, output, filled: 0, consumed: 0, is_end: false }
    }

    /// Decodes a part of the file.
    fn fill(&mut self) -> io::Result<()> {
        (self.filled, self.consumed) = (0, 0);
        let input = self.source.fill_buf()?;
        let is_last = input.is_empty();
        let room = OUTPUT - REPLACEMENT.len();
        let (result, read, written) = self.decoder.decode_to_utf8_without_replacement(
            input,
            &mut self.output[..room],
            is_last,
        );
        self.source.consume(read);
        self.filled = written;
        match result {
            DecoderResult::Malformed(..) => self.replace(),
            DecoderResult::InputEmpty => self.is_end = is_last,
            DecoderResult::OutputFull => {}
        }
        if memchr(0, &self.output[..self.filled]).is_some() {
            self.replace_nul();
        }
        Ok(())
    }

    fn replace(&mut self) {
        let end = self.filled + REPLACEMENT.len();
        self.output[self.filled..end].copy_from_slice(REPLACEMENT.as_bytes());
        self.filled = end;
        self.replaced.add(1);
    }

    fn replace_nul(&mut self) {
        let mut clean = Vec::with_capacity(self.output.len());
        for byte in &self.output[..self.filled] {
            match byte {
                0 => {
                    clean.extend_from_slice(REPLACEMENT.as_bytes());
                    self.replaced.add(1);
                }
                byte => clean.push(*byte),
            }
        }
        self.filled = clean.len();
        clean.resize(clean.len().max(OUTPUT), 0);
        self.output = clean.into_boxed_slice();
    }
}

impl<R: BufRead> BufRead for Decoded<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        while self.consumed == self.filled && !self.is_end {
            self.fill()?;
        }
        Ok(&self.output[self.consumed..self.filled])
    }

    fn consume(&mut self, amount: usize) {
        self.consumed += amount;
    }
}

impl<R: BufRead> Read for Decoded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.fill_buf()?.read(buffer)?;
        self.consume(read);
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(bytes: &[u8]) -> (String, usize) {
        let replaced = Replaced::default();
        let text = Decoded::new(bytes, encoding_of(bytes), replaced.clone());
        (io::read_to_string(text).unwrap(), replaced.count())
    }

    #[test]
    fn every_encoding_becomes_utf8() {
        let text = "<?xml version='1.0'?><a>schön 🙂</a>";
        for (mark, encode) in [
            (&b"\xff\xfe"[..], u16::to_le_bytes as fn(u16) -> [u8; 2]),
            (b"\xfe\xff", u16::to_be_bytes),
            (b"", u16::to_le_bytes),
            (b"", u16::to_be_bytes),
        ] {
            let bytes: Vec<u8> = text.encode_utf16().flat_map(encode).collect();
            assert_eq!(decoded(&[mark, &bytes].concat()), (text.to_owned(), 0));
        }
        assert_eq!(decoded("\u{feff}ok 1".as_bytes()), ("ok 1".to_owned(), 0));
        let latin = b"<?xml version='1.0' encoding='ISO-8859-1'?><a>sch\xf6n</a>";
        assert!(decoded(latin).0.ends_with("<a>schön</a>"));
    }

    #[test]
    fn invalid_characters_are_replaced_and_counted() {
        assert_eq!(decoded(b"got \xff\xc0 raw"), ("got \u{fffd}\u{fffd} raw".to_owned(), 2));
        assert_eq!(decoded(b"a\0b"), ("a\u{fffd}b".to_owned(), 1));
        assert_eq!(decoded(b"cut \xf0\x9f\x99"), ("cut \u{fffd}".to_owned(), 1));
        let long = [&b"x".repeat(OUTPUT - 1)[..], "ä".as_bytes(), &[0xff; 3]].concat();
        let (text, replaced) = decoded(&long);
        assert!(text.ends_with("xä\u{fffd}\u{fffd}\u{fffd}"));
        assert_eq!(replaced, 3);
    }
}
