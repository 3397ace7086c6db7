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

/// Beginnings of the lines about records that the import has archived, and taken out of the archive. The id follows.
const ARCHIVED: &str = "archived ";
const REOPENED: &str = "reopened ";

/// Beginning of the lines about uploads that have begun. The key of the file and the id of the upload follow.
const UPLOAD: &str = "upload ";

/// The ids of records that the import has created or completed and need not send again, and the uploads of
/// files that it has begun. The next import does not send them again, so that it reverts no later changes.
pub(super) struct Finished {
    file: File,
    keys: HashSet<String>,
    /// The ids of records that the import has taken out of the archive, and not archived again.
    reopened: HashSet<String>,
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
        let (keys, reopened, uploads) = (HashSet::new(), HashSet::new(), HashMap::new());
        let mut finished = Self { file, keys, reopened, uploads };
        before[..complete].lines().for_each(|line| finished.take(line));
        Ok(finished)
    }

    /// Takes a line. The last one about a file or a record counts.
    fn take(&mut self, line: &str) {
        if let Some(id) = line.strip_prefix(REOPENED) {
            self.reopened.insert(id.to_owned());
            return;
        }
        if let Some(id) = line.strip_prefix(ARCHIVED) {
            self.reopened.remove(id);
        }
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

    /// Remembers a record that the import takes out of the archive for a while.
    pub(super) fn reopen(&mut self, id: &str) -> Result<()> {
        writeln!(self.file, "{REOPENED}{id}")?;
        self.reopened.insert(id.to_owned());
        Ok(())
    }

    pub(super) fn is_reopened(&self, id: &str) -> bool {
        self.reopened.contains(id)
    }

    /// Remembers a record that the import has archived.
    pub(super) fn archive(&mut self, id: &str) -> Result<()> {
        self.reopened.remove(id);
        self.add(&format!("{ARCHIVED}{id}"))
    }

    /// Returns whether a record that is archived in the export must be archived: the import has not done that, or
    /// has taken the record out of the archive since then.
    pub(super) fn is_to_archive(&self, id: &str) -> bool {
        self.is_reopened(id) || !self.has(&format!("{ARCHIVED}{id}"))
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

    #[test]
    fn a_record_is_archived_once_and_after_each_time_that_it_was_reopened() {
        let folder = tempfile::tempdir().unwrap();
        let open = || Finished::open(folder.path(), "shop").unwrap();
        assert!(open().is_to_archive("one"));
        open().archive("one").unwrap();
        assert!(!open().is_to_archive("one") && open().is_to_archive("two"));
        open().reopen("one").unwrap();
        assert!(open().is_reopened("one") && open().is_to_archive("one"));
        open().archive("one").unwrap();
        assert!(!open().is_reopened("one") && !open().is_to_archive("one"));
    }
}
