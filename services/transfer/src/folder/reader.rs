//! Reads and verifies exports.

use std::{
    fs::File,
    io::{BufRead, BufReader, Read},
    path::{Component, Path, PathBuf},
};

use anyhow::{Context, Result, bail, ensure};
use aws_lc_rs::digest;
use serde::de::DeserializeOwned;

use super::{Entry, FORMAT, LIST, MANIFEST, Manifest, VERSION, part::hex};

/// Size of the chunks in which a digest is computed.
const CHUNK: usize = 1 << 16;

/// Maximum length of a line, in bytes.
const LONGEST_LINE: u64 = 64 << 20;

/// A complete export.
#[derive(Clone)]
pub(crate) struct Reader {
    path: PathBuf,
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
        let manifest = path.join(MANIFEST);
        let Ok(text) = std::fs::read_to_string(&manifest) else {
            bail!(
                "{} has no {MANIFEST}: the export is not complete; repeat `assay export`, which \
                 continues it",
                path.display()
            );
        };
        let manifest: Manifest = serde_json::from_str(&text)
            .with_context(|| format!("{} is not the manifest of an export", manifest.display()))?;
        ensure!(manifest.format == FORMAT, "{} is not an export of Assay", path.display());
        ensure!(
            manifest.version <= VERSION,
            "{} has version {} of the format; this program reads versions up to {VERSION}",
            path.display(),
            manifest.version
        );
        let reader = Self { path: path.to_owned() };
        reader.verify(&manifest.list)?;
        for entry in lines::<Entry>(&path.join(LIST))? {
            reader.verify(&entry?.record)?;
        }
        Ok((reader, manifest))
    }

    /// Returns the path of a file.
    pub(crate) fn file(&self, path: &str) -> PathBuf {
        self.path.join(path)
    }

    /// Returns the records of a file. A missing file has none.
    pub(crate) fn lines<T: DeserializeOwned + 'static>(
        &self,
        path: &str,
    ) -> Result<Box<dyn Iterator<Item = Result<Line<T>>> + Send>> {
        let path = self.file(path);
        if !path.exists() {
            return Ok(Box::new(std::iter::empty()));
        }
        Ok(Box::new(lines(&path)?))
    }

    /// Fails unless a file is as it was when it was listed.
    fn verify(&self, entry: &Entry) -> Result<()> {
        let relative = Path::new(&entry.path);
        let is_inside = relative.components().all(|part| matches!(part, Component::Normal(_)));
        ensure!(is_inside, "{} is not a path within the export", entry.path);
        let path = self.path.join(relative);
        let file = File::open(&path).with_context(|| format!("cannot read {}", path.display()))?;
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
            path.display()
        );
        Ok(())
    }
}

/// Returns the records of an NDJSON file. Blank lines are skipped.
pub(crate) fn lines<T: DeserializeOwned>(
    path: &Path,
) -> Result<impl Iterator<Item = Result<Line<T>>> + Send + use<T>> {
    let file = File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
    let (mut file, path, mut number) = (BufReader::new(file), path.to_owned(), 0);
    Ok(std::iter::from_fn(move || {
        loop {
            let mut line = Vec::new();
            number += 1;
            let at = || format!("{}, line {number}", path.display());
            match file.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut line).with_context(at) {
                Ok(0) => return None,
                Ok(_) if line.trim_ascii().is_empty() => {}
                Ok(_) => {
                    let record = serde_json::from_slice(&line).with_context(at);
                    return Some(record.map(|record| Line { number, record }));
                }
                Err(error) => return Some(Err(error)),
            }
        }
    }))
}
