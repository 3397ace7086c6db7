//! Reads and verifies exports. Only files that the list names are read.

use std::{
    collections::HashMap,
    fs::File,
    io::{self, BufRead, BufReader, Read},
    ops::Range,
    os::unix::fs::FileExt,
    path::Path,
    sync::Arc,
};

use anyhow::{Context, Result, bail, ensure};
use assay_client::visible;
use assay_digest::hex;
use aws_lc_rs::digest;
use bytes::Bytes;
use futures::{Stream, stream};
use serde::de::DeserializeOwned;

use super::{Entry, FORMAT, LIST, MANIFEST, Manifest, Place, Root, VERSION};

/// Size of the chunks in which a file is read.
const CHUNK: usize = 1 << 16;

/// Maximum length of a line, in bytes.
const LONGEST_LINE: u64 = 64 << 20;

/// Maximum size of a manifest, in bytes.
const LARGEST_MANIFEST: u64 = 1 << 20;

/// A complete export.
#[derive(Clone)]
pub(crate) struct Reader {
    root: Arc<Root>,
    /// The files that were verified.
    listed: Arc<HashMap<Place, Entry>>,
}

/// A record with its place.
pub(crate) struct Line<T> {
    /// The number of the line, from 1.
    pub(crate) number: u64,
    pub(crate) record: T,
}

impl Reader {
    /// Opens an export after checking that all its files are as they were written.
    pub(crate) fn open(path: &Path) -> Result<(Self, Manifest)> {
        let root = Arc::new(Root::open(path)?);
        let manifest = manifest(&root, path)?;
        ensure!(manifest.list.path == LIST, "the list of an export is {LIST}");
        verify(&root, LIST, &manifest.list)?;
        let mut listed = HashMap::new();
        // A file that was written again after an interruption is listed again.
        for entry in lines::<Entry>(open(&root, LIST)?, root.at(LIST)) {
            let entry = entry?.record;
            listed.insert(Place::parse(&entry.path)?, entry);
        }
        for (place, entry) in &listed {
            verify(&root, place.as_str(), entry)?;
        }
        Ok((Self { root, listed: Arc::new(listed) }, manifest))
    }

    /// Returns the records of a file. One that the list does not name has none.
    pub(crate) fn lines<T: DeserializeOwned + 'static>(
        &self,
        place: &Place,
    ) -> Result<Box<dyn Iterator<Item = Result<Line<T>>> + Send>> {
        let Some(file) = self.file(place)? else { return Ok(Box::new(std::iter::empty())) };
        Ok(Box::new(lines(file, self.root.at(place.as_str()))))
    }

    /// Opens a file, if the list names it.
    pub(crate) fn file(&self, place: &Place) -> Result<Option<File>> {
        if !self.listed.contains_key(place) {
            return Ok(None);
        }
        open(&self.root, place.as_str()).map(Some)
    }

    /// Returns the entry of a file. Fails if the list does not name it.
    pub(crate) fn entry(&self, place: &Place) -> Result<&Entry> {
        let entry = self.listed.get(place);
        entry.with_context(|| format!("the list of the export does not name {place}"))
    }

    /// Opens a file to send it. Fails if the list does not name it.
    pub(crate) fn contents(&self, place: &Place) -> Result<Contents> {
        let entry = self.entry(place)?;
        let file = Arc::new(open(&self.root, place.as_str())?);
        Ok(Contents { file, bytes: entry.bytes, sha256: entry.sha256.clone() })
    }
}

/// A file that is sent as it was when the export was verified.
#[derive(Clone)]
pub(crate) struct Contents {
    file: Arc<File>,
    /// Size in bytes.
    pub(crate) bytes: u64,
    /// SHA-256 in hexadecimal digits.
    pub(crate) sha256: String,
}

impl Contents {
    /// Returns the chunks of a part of the file.
    pub(crate) fn chunks(
        self,
        part: Range<u64>,
    ) -> impl Stream<Item = io::Result<Bytes>> + Send + 'static {
        stream::try_unfold((self, part.start), move |(contents, at)| async move {
            let left = usize::try_from(part.end.saturating_sub(at)).unwrap_or(usize::MAX);
            if left == 0 {
                return Ok(None);
            }
            let mut chunk = vec![0; left.min(CHUNK)];
            contents.file.read_exact_at(&mut chunk, at)?;
            let next = at + chunk.len() as u64;
            Ok(Some((Bytes::from(chunk), (contents, next))))
        })
    }
}

/// Reads the manifest of an export.
fn manifest(root: &Root, path: &Path) -> Result<Manifest> {
    let Some(file) = root.read(MANIFEST)? else {
        bail!(
            "{} has no {MANIFEST}: the export is not complete; repeat `assay export`, which continues it",
            path.display()
        );
    };
    let manifest: Manifest =
        serde_json::from_reader(BufReader::new(file.take(LARGEST_MANIFEST)))
            .with_context(|| format!("{} is not the manifest of an export", root.at(MANIFEST)))?;
    ensure!(manifest.format == FORMAT, "{} is not an export of Assay", path.display());
    ensure!(
        manifest.version <= VERSION,
        "{} has version {} of the format; this program reads versions up to {VERSION}",
        path.display(),
        manifest.version
    );
    Ok(manifest)
}

fn open(root: &Root, path: &str) -> Result<File> {
    root.read(path)?.with_context(|| format!("cannot read {}: there is none", root.at(path)))
}

/// Fails unless a file is as it was when it was listed.
fn verify(root: &Root, path: &str, entry: &Entry) -> Result<()> {
    let file = open(root, path)?.take(entry.bytes.saturating_add(1));
    let (mut file, mut chunk) = (BufReader::new(file), vec![0; CHUNK]);
    let (mut digest, mut bytes) = (digest::Context::new(&digest::SHA256), 0);
    loop {
        let count = file.read(&mut chunk)?;
        if count == 0 {
            break;
        }
        digest.update(&chunk[..count]);
        bytes += count as u64;
    }
    ensure!(
        bytes == entry.bytes && hex(digest.finish().as_ref()) == entry.sha256,
        "{} differs from what was exported; copy the export again",
        root.at(path)
    );
    Ok(())
}

/// Reads the next line of a file. `None` at its end.
pub(crate) fn next_line(file: &mut BufReader<File>) -> Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    file.take(LONGEST_LINE + 1).read_until(b'\n', &mut line)?;
    ensure!(line.len() as u64 <= LONGEST_LINE, "the line has more than {LONGEST_LINE} bytes");
    Ok(Some(line).filter(|line| !line.is_empty()))
}

/// Returns the records of an NDJSON file. Blank lines are skipped.
pub(super) fn lines<T: DeserializeOwned>(
    file: File,
    path: String,
) -> impl Iterator<Item = Result<Line<T>>> + Send + use<T> {
    let (mut file, mut number) = (BufReader::new(file), 0);
    std::iter::from_fn(move || {
        loop {
            number += 1;
            let at = || format!("{}, line {number}", visible(&path));
            match next_line(&mut file).with_context(at) {
                Ok(None) => return None,
                Ok(Some(line)) if line.trim_ascii().is_empty() => {}
                Ok(Some(line)) => {
                    let record = serde_json::from_slice(&line).with_context(at);
                    return Some(record.map(|record| Line { number, record }));
                }
                Err(error) => return Some(Err(error)),
            }
        }
    })
}
