//! A file that was received, in units of memory.

use std::{
    collections::VecDeque,
    io::{self, BufRead, Read},
};

use assay_proto::execution::FormFile;

use super::UNIT;

/// A file of a body. Reading it returns the memory of what has been read.
#[derive(Debug, Default)]
pub struct File {
    /// The name that the client gave it; empty if the body is not a form.
    pub name: String,
    /// Whether it is an attachment, which reports refer to by its name, and not a report.
    pub is_attachment: bool,
    /// The media type that the client gave it; empty if it did not.
    pub content_type: String,
    /// The units that are left, and the number of bytes read from the first one.
    units: VecDeque<Vec<u8>>,
    read: usize,
}

impl From<FormFile> for File {
    fn from(FormFile { name, is_attachment, content_type }: FormFile) -> Self {
        Self { name, is_attachment, content_type, ..Self::default() }
    }
}

impl File {
    /// Returns the unread contents, in parts.
    pub fn parts(&self) -> impl Iterator<Item = &[u8]> + Clone {
        let start = |index| if index == 0 { self.read } else { 0 };
        self.units.iter().enumerate().map(move |(index, unit)| &unit[start(index)..])
    }

    /// Returns the size of the unread contents in bytes.
    pub fn size(&self) -> usize {
        self.parts().map(<[u8]>::len).sum()
    }

    /// Adds a chunk.
    pub(super) fn fill(&mut self, mut chunk: &[u8]) {
        while !chunk.is_empty() {
            if self.units.back().is_none_or(|unit| unit.len() == UNIT) {
                self.units.push_back(Vec::new());
            }
            let Some(unit) = self.units.back_mut() else { return };
            let (fits, rest) = chunk.split_at(chunk.len().min(UNIT - unit.len()));
            if unit.is_empty() && !rest.is_empty() {
                unit.reserve_exact(UNIT);
            }
            unit.extend_from_slice(fits);
            chunk = rest;
        }
    }
}

impl BufRead for File {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        Ok(self.units.front().map_or(&[], |unit| &unit[self.read..]))
    }

    fn consume(&mut self, amount: usize) {
        self.read += amount;
        if self.units.front().is_some_and(|unit| unit.len() <= self.read) {
            self.units.pop_front();
            self.read = 0;
        }
    }
}

impl Read for File {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.fill_buf()?.read(buffer)?;
        self.consume(read);
        Ok(read)
    }
}
