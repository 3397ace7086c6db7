//! A file of an export that is being written.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, BufRead, BufReader, BufWriter, Write},
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use aws_lc_rs::digest;
use serde::{Serialize, de::DeserializeOwned};

use super::Entry;

/// A file that is not complete.
pub(crate) struct Part {
    path: String,
    target: PathBuf,
    draft: PathBuf,
    /// The open file.
    file: Option<BufWriter<File>>,
    digest: digest::Context,
    lines: u64,
    bytes: u64,
}

impl Part {
    /// Begins a file, from its start if it was begun before.
    pub(super) fn begin(folder: &Path, path: &str) -> Result<Self> {
        let (target, draft) = places(folder, path)?;
        let file = File::create(&draft);
        let file = file.with_context(|| format!("cannot write {}", draft.display()))?;
        Ok(Self::of(path, target, draft, file))
    }

    /// Continues a file of records after its last complete line. Returns the records so far.
    pub(super) fn resume<T: DeserializeOwned>(folder: &Path, path: &str) -> Result<(Self, Vec<T>)> {
        let (target, draft) = places(folder, path)?;
        let file = OpenOptions::new().read(true).append(true).create(true).open(&draft);
        let file = file.with_context(|| format!("cannot write {}", draft.display()))?;
        let mut part = Self::of(path, target, draft, file.try_clone()?);
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

    fn of(path: &str, target: PathBuf, draft: PathBuf, file: File) -> Self {
        Self {
            path: path.to_owned(),
            target,
            draft,
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
        let written = self.open().and_then(|file| file.write_all(bytes));
        written.with_context(|| format!("cannot write {}", self.draft.display()))
    }

    /// Returns the file, which is opened again if it was closed.
    fn open(&mut self) -> io::Result<&mut BufWriter<File>> {
        let file = match self.file.take() {
            Some(file) => file,
            None => BufWriter::new(OpenOptions::new().append(true).open(&self.draft)?),
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

    pub(crate) fn flush(&mut self) -> Result<()> {
        let flushed = self.file.as_mut().map_or(Ok(()), BufWriter::flush);
        flushed.with_context(|| format!("cannot write {}", self.draft.display()))
    }

    fn count(&mut self, bytes: &[u8]) {
        self.digest.update(bytes);
        self.bytes += bytes.len() as u64;
    }

    pub(super) fn finish(mut self) -> Result<Entry> {
        self.flush()?;
        fs::rename(&self.draft, &self.target)?;
        let sha256 = hex(self.digest.finish().as_ref());
        Ok(Entry { path: self.path, lines: self.lines, bytes: self.bytes, sha256 })
    }
}

/// Returns the paths of a file when it is complete and before, and creates their folder.
fn places(folder: &Path, path: &str) -> Result<(PathBuf, PathBuf)> {
    let target = folder.join(path);
    if let Some(parent) = target.parent() {
        fs::create_dir_all(parent)
            .with_context(|| format!("cannot create {}", parent.display()))?;
    }
    let draft = folder.join(format!("{path}.part"));
    Ok((target, draft))
}

/// Returns bytes as hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |digits, byte| digits + &format!("{byte:02x}"))
}
