//! The beginning of a file, from which its format is recognized.

use std::io::{self, BufRead, Read};

use assay_proto::Fault;
use encoding_rs::Encoding;

use crate::{
    decoded::{Decoded, Replaced, encoding_of},
    json::Outline,
    limits::LOOK_AHEAD,
    xml,
};

/// The beginning of a file.
#[derive(Debug)]
pub struct Head {
    bytes: Vec<u8>,
    encoding: &'static Encoding,
    /// The bytes as UTF-8.
    text: Vec<u8>,
    /// Name of the root element, if the file is XML.
    root: String,
    json: Outline,
}

impl Head {
    /// Reads the beginning of a file.
    pub(crate) fn read(file: &mut dyn BufRead) -> Result<Self, Fault> {
        let mut bytes = Vec::with_capacity(LOOK_AHEAD);
        let broken =
            |error: io::Error| Fault::Malformed(format!("the file is unreadable: {error}"));
        file.take(LOOK_AHEAD as u64).read_to_end(&mut bytes).map_err(broken)?;
        let encoding = encoding_of(&bytes);
        let mut text = Vec::with_capacity(bytes.len());
        let mut decoded = Decoded::new(&bytes[..], encoding, Replaced::default());
        decoded.read_to_end(&mut text).map_err(broken)?;
        let root = xml::root(&text)?.unwrap_or_default();
        let json = Outline::of(&text);
        Ok(Self { bytes, encoding, text, root, json })
    }

    /// Returns the name of the root element of an XML file, or an empty text.
    pub(crate) fn xml_root(&self) -> &str {
        &self.root
    }

    /// Returns the beginning of a JSON object.
    pub(crate) fn object(&self) -> Option<&Outline> {
        (self.json.first == b'{').then_some(&self.json)
    }

    /// Returns the beginning of a JSON array.
    pub(crate) fn array(&self) -> Option<&Outline> {
        (self.json.first == b'[').then_some(&self.json)
    }

    /// Returns the lines, of which the last one may be incomplete.
    pub(crate) fn lines(&self) -> impl Iterator<Item = &[u8]> {
        self.text.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii_end)
    }

    /// Returns whether the file starts with these bytes.
    pub(crate) fn starts_with(&self, bytes: &[u8]) -> bool {
        self.bytes.starts_with(bytes)
    }

    /// Returns whether the file is empty.
    pub(crate) fn is_empty(&self) -> bool {
        self.text.iter().all(u8::is_ascii_whitespace)
    }

    pub(crate) fn encoding(&self) -> &'static Encoding {
        self.encoding
    }

    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}
