//! The folder of a cache: files by their SHA-256, files that are being downloaded, and the folders of tests.

use std::{
    collections::HashMap,
    fs::{self, DirBuilder, File},
    io,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
    time::SystemTime,
};

use anyhow::{Context as _, bail};
use rustix::{
    fs::{FlockOperation, flock},
    io::Errno,
};

/// Name of the folder with the folders of tests. It is removed when an engine starts, so its name must not be that
/// of a folder which somebody has in the same folder.
pub(super) const TESTS: &str = "assay-tests";

/// Prefix of files that are being downloaded. Those that were left are removed, too.
pub(super) const PART: &str = "assay-part-";

/// Name of the file that is locked.
const LOCK: &str = "assay-lock";

/// A file that is kept.
pub(super) struct Kept {
    pub(super) size: u64,
    /// Time of its last change; none before its contents were compared with its name.
    pub(super) modified: Option<SystemTime>,
    /// Time of its last use; before the first one of this engine, that of its last read.
    pub(super) used: SystemTime,
}

/// Opens a folder that no other engine uses, and removes the folders of tests and the unfinished downloads in it.
/// Returns its absolute path, its files, and the lock.
pub(super) fn open(folder: &Path) -> anyhow::Result<(PathBuf, HashMap<String, Kept>, File)> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let folder = folder.canonicalize()?;
    if folder.to_str().is_none() {
        bail!("its path is not UTF-8");
    }
    let lock = File::options().create(true).truncate(false).write(true).open(folder.join(LOCK))?;
    match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
        Err(Errno::WOULDBLOCK) => bail!(
            "another engine uses it: give each engine a folder of its own (ASSAY_ENGINE_CACHE)"
        ),
        locked => locked.with_context(|| format!("cannot lock {LOCK}"))?,
    }
    let tests = folder.join(TESTS);
    match fs::remove_dir_all(&tests) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error.into()),
        _ => fs::create_dir(&tests)?,
    }
    let mut kept = HashMap::new();
    for entry in fs::read_dir(&folder)? {
        let entry = entry?;
        let (name, found) = (entry.file_name().to_string_lossy().into_owned(), entry.metadata()?);
        if found.is_file() && is_sha256(&name) {
            let used = found.accessed().unwrap_or(SystemTime::UNIX_EPOCH);
            let entry = Kept { size: found.len(), modified: None, used };
            kept.insert(name, entry);
        } else if found.is_file() && name.starts_with(PART) {
            remove(&entry.path())?;
        }
    }
    Ok((folder, kept, lock))
}

/// Removes a file if it exists.
pub(super) fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

pub(super) fn is_sha256(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}
