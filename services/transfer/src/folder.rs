//! Exports on disk: NDJSON files, a list of all files with their digests, and a manifest.
//!
//! A file has the extension `.part` until it is complete. The list has a line for each complete file.
//! The manifest is written last, and has the digest of the list.
//!
//! An export, and the server that one is written from, may be hostile. So a [`Place`] is the only way to
//! name a file, [`Root`] follows no symbolic links, and [`Reader`] reads what the list names.

mod part;
mod place;
mod reader;
mod root;

use std::{
    collections::{BTreeMap, HashSet},
    fs,
    io::{Read, Write},
    path::Path,
    sync::Arc,
};

use anyhow::{Context, Result, bail, ensure};
use serde::{Deserialize, Serialize};

use self::place::FOLDERS;
pub(crate) use self::{
    part::Part,
    place::{Name, Place},
    reader::{Contents, Reader, next_line},
    root::Root,
};

/// The version of the format. Readers refuse later ones. Version 1 has no files of projects.
pub(crate) const VERSION: u32 = 2;

/// The names of the files of each noun.
pub(crate) const PROJECT: Place = Place::top("project.ndjson");
pub(crate) const STORED_FILES: Place = Place::top("storedfiles.ndjson");
pub(crate) const SUBJECTS: Place = Place::top("subjects.ndjson");
pub(crate) const ENVIRONMENTS: Place = Place::top("environments.ndjson");
pub(crate) const TEST_CASES: Place = Place::top("testcases.ndjson");
pub(crate) const TEST_SETS: Place = Place::top("testsets.ndjson");
pub(crate) const KNOWN_FAILURES: Place = Place::top("knownfailures.ndjson");
pub(crate) const EXECUTIONS: Place = Place::top("executions.ndjson");

static NOUNS: [Place; 8] = [
    PROJECT,
    STORED_FILES,
    SUBJECTS,
    ENVIRONMENTS,
    TEST_CASES,
    TEST_SETS,
    KNOWN_FAILURES,
    EXECUTIONS,
];

/// Maximum size of a file that is copied into an export, in bytes: that of an artifact by default.
const LARGEST_FILE: u64 = 5 << 30;

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
    root: Arc<Root>,
    finished: HashSet<Place>,
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
        let root = Arc::new(Root::open(path)?);
        // The program may have ended before it wrote the manifest.
        root.rename(LIST, &format!("{LIST}.part"))?;
        let (list, entries) = Part::resume::<Entry>(&root, &Place::top(LIST))?;
        let mut folder = Self { root, finished: HashSet::new(), counts: BTreeMap::new(), list };
        for entry in &entries {
            folder.count(&Place::parse(&entry.path)?, entry.lines);
        }
        Ok(folder)
    }

    /// Returns whether a file is complete.
    pub(crate) fn has(&self, place: &Place) -> bool {
        self.finished.contains(place)
    }

    /// Begins a file.
    pub(crate) fn begin(&self, place: &Place) -> Result<Part> {
        Part::begin(&self.root, place)
    }

    /// Continues a file that was interrupted. Returns its records so far.
    pub(crate) fn resume<T: serde::de::DeserializeOwned>(
        &self,
        place: &Place,
    ) -> Result<(Part, Vec<T>)> {
        Part::resume(&self.root, place)
    }

    /// Continues a file of bytes that was interrupted.
    pub(crate) fn append(&self, place: &Place) -> Result<Part> {
        Part::append(&self.root, place)
    }

    /// Copies a file of a folder into the export. Links are not followed.
    pub(crate) fn copy(&mut self, folder: &Path, name: &Name, place: &Place) -> Result<()> {
        let root = Root::open(folder)?;
        let Some(file) = root.read(name.as_str())? else {
            bail!("cannot read {}", root.at(name.as_str()));
        };
        let (mut file, mut size) = (file.take(LARGEST_FILE + 1), 0);
        let (mut part, mut chunk) = (self.begin(place)?, vec![0; 1 << 16]);
        loop {
            let count = file.read(&mut chunk)?;
            if count == 0 {
                break;
            }
            size += count as u64;
            ensure!(size <= LARGEST_FILE, "{} is too large", root.at(name.as_str()));
            part.write(&chunk[..count])?;
        }
        self.finish(part)
    }

    /// Completes a file.
    pub(crate) fn finish(&mut self, part: Part) -> Result<()> {
        let (place, entry) = part.finish()?;
        self.list.line(&entry)?;
        self.list.flush()?;
        self.count(&place, entry.lines);
        Ok(())
    }

    /// Completes the export. Returns the numbers of records.
    pub(crate) fn complete(self, source: &str) -> Result<BTreeMap<String, u64>> {
        let (_, list) = self.list.finish()?;
        let counts = self.counts;
        let manifest = Manifest {
            format: FORMAT.to_owned(),
            version: VERSION,
            source: source.to_owned(),
            counts: counts.clone(),
            list,
        };
        let draft = format!("{MANIFEST}.part");
        let mut file = self.root.create(&draft)?;
        serde_json::to_writer_pretty(&mut file, &manifest)?;
        file.write_all(b"\n")?;
        file.sync_all()?;
        self.root.rename(&draft, MANIFEST)?;
        Ok(counts)
    }

    fn count(&mut self, place: &Place, lines: u64) {
        if NOUNS.contains(place) {
            self.counts.insert(place.to_string(), lines);
        }
        self.finished.insert(place.clone());
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
    let nouns = NOUNS.iter().map(Place::as_str).chain([LIST]);
    for file in nouns.flat_map(|noun| [noun.to_owned(), format!("{noun}.part")]) {
        match fs::remove_file(path.join(file)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
            _ => {}
        }
    }
    for folder in FOLDERS.map(|folder| path.join(folder)) {
        if folder.exists() {
            fs::remove_dir_all(folder)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
