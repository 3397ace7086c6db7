//! A file of an export that is being written.

use std::{
    fs::File,
    io::{BufRead, BufReader, BufWriter, Read, Write},
    sync::Arc,
};

use anyhow::{Context, Result};
use assay_digest::hex;
use aws_lc_rs::digest;
use serde::{Serialize, de::DeserializeOwned};

use super::{Entry, Place, Root};

/// Size of the chunks in which a file is read that was interrupted.
const CHUNK: usize = 1 << 16;

/// A file that is not complete.
pub(crate) struct Part {
    place: Place,
    root: Arc<Root>,
    /// The open file.
    file: Option<BufWriter<File>>,
    digest: digest::Context,
    lines: u64,
    bytes: u64,
}

impl Part {
    /// Begins a file, from its start if it was begun before.
    pub(super) fn begin(root: &Arc<Root>, place: &Place) -> Result<Self> {
        Ok(Self::of(root, place, root.create(&place.draft())?))
    }

    /// Continues a file of records after its last complete line. Returns the records so far.
    pub(super) fn resume<T: DeserializeOwned>(
        root: &Arc<Root>,
        place: &Place,
    ) -> Result<(Self, Vec<T>)> {
        let file = root.append(&place.draft())?;
        let mut part = Self::of(root, place, file.try_clone()?);
        let (mut before, mut line, mut records) = (BufReader::new(&file), Vec::new(), Vec::new());
        while before.read_until(b'\n', &mut line)? > 0 && line.ends_with(b"\n") {
            let Ok(record) = serde_json::from_slice(&line) else { break };
            records.push(record);
            part.count(&line);
            part.lines += 1;
            line.clear();
        }
        file.set_len(part.bytes)?;
        Ok((part, records))
    }

    /// Continues a file of bytes after those that were written.
    pub(super) fn append(root: &Arc<Root>, place: &Place) -> Result<Self> {
        let mut file = root.append(&place.draft())?;
        let (mut part, mut chunk) = (Self::of(root, place, file.try_clone()?), vec![0; CHUNK]);
        loop {
            let count = file.read(&mut chunk)?;
            if count == 0 {
                return Ok(part);
            }
            part.count(&chunk[..count]);
        }
    }

    fn of(root: &Arc<Root>, place: &Place, file: File) -> Self {
        Self {
            place: place.clone(),
            root: root.clone(),
            file: Some(BufWriter::new(file)),
            digest: digest::Context::new(&digest::SHA256),
            lines: 0,
            bytes: 0,
        }
    }

    /// Adds a record.
    pub(crate) fn line(&mut self, record: &impl Serialize) -> Result<()> {
        let mut line = serde_json::to_vec(record)?;
        line.push(b'\n');
        self.write(&line)?;
        self.lines += 1;
        Ok(())
    }

    /// Adds bytes, which are not counted as lines.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.count(bytes);
        let written = self.open()?.write_all(bytes);
        written.with_context(|| self.cannot_write())
    }

    fn cannot_write(&self) -> String {
        format!("cannot write {}", self.root.at(&self.place.draft()))
    }

    /// Returns the file, which is opened again if it was closed.
    fn open(&mut self) -> Result<&mut BufWriter<File>> {
        let file = match self.file.take() {
            Some(file) => file,
            None => BufWriter::new(self.root.append(&self.place.draft())?),
        };
        Ok(self.file.insert(file))
    }

    /// Closes the file until it is written again: a program can have only some files open.
    pub(crate) fn close(&mut self) -> Result<()> {
        self.flush()?;
        self.file = None;
        Ok(())
    }

    /// Counts lines that were added as bytes.
    pub(crate) fn add_lines(&mut self, lines: u64) {
        self.lines += lines;
    }

    /// Returns the size of the file so far, in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the SHA-256 of the file so far, in hexadecimal digits.
    pub(crate) fn sha256(&self) -> String {
        hex(self.digest.clone().finish().as_ref())
    }

    pub(crate) fn flush(&mut self) -> Result<()> {
        let flushed = self.file.as_mut().map_or(Ok(()), BufWriter::flush);
        flushed.with_context(|| self.cannot_write())
    }

    fn count(&mut self, bytes: &[u8]) {
        self.digest.update(bytes);
        self.bytes += bytes.len() as u64;
    }

    pub(super) fn finish(mut self) -> Result<(Place, Entry)> {
        self.flush()?;
        self.root.rename(&self.place.draft(), self.place.as_str())?;
        let sha256 = self.sha256();
        let path = self.place.to_string();
        Ok((self.place, Entry { path, lines: self.lines, bytes: self.bytes, sha256 }))
    }
}
