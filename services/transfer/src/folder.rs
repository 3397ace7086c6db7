//! Exports on disk: NDJSON files, a list of all files with their digests, and a manifest.
//!
//! A file has the extension `.part` until it is complete. The list has a line for each complete file.
//! The manifest is written last, and has the digest of the list.

mod part;
mod reader;

use std::{
    collections::{BTreeMap, HashSet},
    fs::{self, OpenOptions},
    io::{Read, Write},
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

pub(crate) use self::{
    part::{Part, hex},
    reader::{Line, Reader},
};

/// The version of the format. Readers refuse later ones.
pub(crate) const VERSION: u32 = 1;

/// The names of the files of each noun.
pub(crate) const PROJECT: &str = "project.ndjson";
pub(crate) const SUBJECTS: &str = "subjects.ndjson";
pub(crate) const ENVIRONMENTS: &str = "environments.ndjson";
pub(crate) const TEST_CASES: &str = "testcases.ndjson";
pub(crate) const TEST_SETS: &str = "testsets.ndjson";
pub(crate) const KNOWN_FAILURES: &str = "knownfailures.ndjson";
pub(crate) const EXECUTIONS: &str = "executions.ndjson";

const LIST: &str = "files.ndjson";
const MANIFEST: &str = "manifest.json";
const FORMAT: &str = "assay-export";

/// A complete file.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Entry {
    /// The path below the folder, with `/`.
    pub(crate) path: String,
    pub(crate) lines: u64,
    pub(crate) bytes: u64,
    /// The digest in hexadecimal digits.
    pub(crate) sha256: String,
}

/// The description of a complete export.
#[derive(Debug, Deserialize, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Manifest {
    format: String,
    pub(crate) version: u32,
    /// The program that the records are from.
    pub(crate) source: String,
    /// The number of records in the file of each noun.
    pub(crate) counts: BTreeMap<String, u64>,
    /// The list of all other files.
    list: Entry,
}

/// A folder that an export is written to.
pub(crate) struct Folder {
    path: PathBuf,
    finished: HashSet<String>,
    counts: BTreeMap<String, u64>,
    list: Part,
}

impl Folder {
    /// Creates a folder, or continues an export that was interrupted.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        fs::create_dir_all(path).with_context(|| format!("cannot create {}", path.display()))?;
        if is_complete(path) {
            bail!("{} has a complete export; choose another folder", path.display());
        }
        let list = path.join(LIST);
        if list.exists() {
            // The program ended before it wrote the manifest.
            fs::rename(&list, path.join(format!("{LIST}.part")))?;
        }
        let (list, entries) = Part::resume::<Entry>(path, LIST)?;
        let mut folder =
            Self { path: path.to_owned(), finished: HashSet::new(), counts: BTreeMap::new(), list };
        for entry in &entries {
            folder.count(entry);
        }
        Ok(folder)
    }

    /// Returns whether a file is complete.
    pub(crate) fn has(&self, path: &str) -> bool {
        self.finished.contains(path)
    }

    /// Begins a file.
    pub(crate) fn begin(&self, path: &str) -> Result<Part> {
        Part::begin(&self.path, path)
    }

    /// Continues a file that was interrupted. Returns its records so far.
    pub(crate) fn resume<T: serde::de::DeserializeOwned>(
        &self,
        path: &str,
    ) -> Result<(Part, Vec<T>)> {
        Part::resume(&self.path, path)
    }

    /// Copies a file into the export.
    pub(crate) fn copy(&mut self, from: &Path, path: &str) -> Result<()> {
        let file = fs::File::open(from);
        let mut file = file.with_context(|| format!("cannot read {}", from.display()))?;
        let (mut part, mut chunk) = (self.begin(path)?, vec![0; 1 << 16]);
        loop {
            let count = file.read(&mut chunk)?;
            if count == 0 {
                break;
            }
            part.write(&chunk[..count])?;
        }
        self.finish(part)
    }

    /// Completes a file.
    pub(crate) fn finish(&mut self, part: Part) -> Result<()> {
        let entry = part.finish()?;
        self.list.line(&entry)?;
        self.list.flush()?;
        self.count(&entry);
        Ok(())
    }

    /// Completes the export. Returns the numbers of records.
    pub(crate) fn complete(self, source: &str) -> Result<BTreeMap<String, u64>> {
        let list = self.list.finish()?;
        let counts = self.counts;
        let manifest = Manifest {
            format: FORMAT.to_owned(),
            version: VERSION,
            source: source.to_owned(),
            counts: counts.clone(),
            list,
        };
        let draft = self.path.join(format!("{MANIFEST}.part"));
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).open(&draft)?;
        serde_json::to_writer_pretty(&mut file, &manifest)?;
        file.write_all(b"\n")?;
        file.sync_all()?;
        fs::rename(draft, self.path.join(MANIFEST))?;
        Ok(counts)
    }

    fn count(&mut self, entry: &Entry) {
        if !entry.path.contains('/') {
            self.counts.insert(entry.path.clone(), entry.lines);
        }
        self.finished.insert(entry.path.clone());
    }
}

/// Returns whether a folder has a complete export.
pub(crate) fn is_complete(path: &Path) -> bool {
    path.join(MANIFEST).is_file()
}

/// Returns whether a folder has an export that is not complete.
pub(crate) fn is_begun(path: &Path) -> bool {
    path.join(format!("{LIST}.part")).is_file() || path.join(LIST).is_file()
}

/// Removes an export, complete or not. Other files of the folder are kept.
pub(crate) fn remove(path: &Path) -> Result<()> {
    if !is_complete(path) && !is_begun(path) {
        return Ok(());
    }
    // The manifest comes first: without it, nothing is taken for a complete export.
    let manifest = path.join(MANIFEST);
    if manifest.exists() {
        fs::remove_file(manifest)?;
    }
    let nouns =
        [PROJECT, SUBJECTS, ENVIRONMENTS, TEST_CASES, TEST_SETS, KNOWN_FAILURES, EXECUTIONS, LIST];
    for file in nouns.iter().flat_map(|noun| [(*noun).to_owned(), format!("{noun}.part")]) {
        match fs::remove_file(path.join(file)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
            _ => {}
        }
    }
    let executions = path.join("executions");
    if executions.exists() {
        fs::remove_dir_all(executions)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
