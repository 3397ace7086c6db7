//! The progress of an import, which the next one reads.

use std::{
    collections::{HashMap, HashSet},
    fs::{self, File},
    io::{Read, Write},
    path::Path,
};

use anyhow::{Context, Result};
use uuid::Uuid;

use crate::folder::Root;

/// Maximum size of the progress that is read, in bytes.
const LARGEST: u64 = 1 << 30;

/// Beginning of the lines about uploads that have begun. The key of the file and the id of the upload follow.
const UPLOAD: &str = "upload ";

/// The ids of records that the import has created, and of executions that it has completed and need not
/// send again; and the uploads of files that it has begun.
pub(super) struct Finished {
    file: File,
    keys: HashSet<String>,
    uploads: HashMap<String, Uuid>,
}

impl Finished {
    pub(super) fn open(work: &Path, project: &str) -> Result<Self> {
        fs::create_dir_all(work)?;
        let file = Root::open(work)?.append(&format!("imported-{project}.txt"));
        let mut file = file.context("choose another --work")?;
        let mut before = String::new();
        (&mut file).take(LARGEST).read_to_string(&mut before)?;
        // The last line may be cut off.
        let complete = before.rfind('\n').map_or(0, |end| end + 1);
        if complete < before.len() {
            writeln!(file)?;
        }
        let mut finished = Self { file, keys: HashSet::new(), uploads: HashMap::new() };
        before[..complete].lines().for_each(|line| finished.take(line));
        Ok(finished)
    }

    /// Takes a line. The last one about a file counts.
    fn take(&mut self, line: &str) {
        let upload = line.strip_prefix(UPLOAD).and_then(|upload| {
            let (file, id) = upload.rsplit_once(' ')?;
            Some((file.to_owned(), Uuid::try_parse(id).ok()?))
        });
        match upload {
            Some((file, id)) => _ = self.uploads.insert(file, id),
            None => _ = self.keys.insert(line.to_owned()),
        }
    }

    pub(super) fn has(&self, key: &str) -> bool {
        self.keys.contains(key)
    }

    pub(super) fn add(&mut self, key: &str) -> Result<()> {
        writeln!(self.file, "{key}")?;
        self.keys.insert(key.to_owned());
        Ok(())
    }

    /// Returns the upload of a file that an earlier import has begun.
    pub(super) fn upload(&self, file: &str) -> Option<Uuid> {
        self.uploads.get(file).copied()
    }

    /// Adds the upload of a file, which has begun.
    pub(super) fn begin_upload(&mut self, file: &str, id: Uuid) -> Result<()> {
        Ok(writeln!(self.file, "{UPLOAD}{file} {id}")?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_import_reads_what_the_one_before_has_done_and_begun() {
        let folder = tempfile::tempdir().unwrap();
        let [first, second] = [1, 2].map(Uuid::from_u128);
        let mut progress = Finished::open(folder.path(), "shop").unwrap();
        progress.add("one").unwrap();
        progress.begin_upload("a b", first).unwrap();
        progress.begin_upload("a b", second).unwrap();
        write!(progress.file, "upload c 0000").unwrap();
        let mut progress = Finished::open(folder.path(), "shop").unwrap();
        assert!(progress.has("one") && !progress.has("upload"));
        assert_eq!((progress.upload("a b"), progress.upload("c")), (Some(second), None));
        progress.add("two").unwrap();
        let progress = Finished::open(folder.path(), "shop").unwrap();
        assert!(progress.has("one") && progress.has("two"), "after a line that was cut off");
        assert!(!Finished::open(folder.path(), "other").unwrap().has("one"));
    }
}
