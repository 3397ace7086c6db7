//! Files of leases, kept by their SHA-256, so that each is downloaded once.
//!
//! Tests get links to the files, which are read-only. So a file can be removed from the cache while a test uses
//! it, and one that a test has changed regardless is recognized by its time, and downloaded again.

use std::{
    collections::HashMap,
    fs::{self, DirBuilder, File, Permissions},
    io,
    os::unix::fs::{DirBuilderExt, PermissionsExt},
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
    time::SystemTime,
};

use anyhow::{Context, bail};
use assay_proto::execution::LeasedFile;
use rustix::fs::{FlockOperation, flock};
use tempfile::{NamedTempFile, TempDir};
use tokio::task::spawn_blocking;

use crate::{
    api::Api,
    config::Config,
    download::{self, Failure, Hash},
};

/// The files that are kept, in a folder of at most `most` bytes.
pub(crate) struct Cache {
    folder: PathBuf,
    most: u64,
    kept: Mutex<HashMap<String, Kept>>,
    /// One file is downloaded at a time, so all others are complete when room is made for it.
    turn: tokio::sync::Mutex<()>,
    /// Locked while this engine uses the folder.
    _lock: File,
    /// The folder, if it ends with the engine.
    _temporary: Option<TempDir>,
}

/// A file that is kept.
struct Kept {
    size: u64,
    /// Time of its last change; none before its contents were compared with its name.
    modified: Option<SystemTime>,
    /// Time of its last use; before the first one of this engine, that of its last read.
    used: SystemTime,
}

impl Cache {
    /// Opens the folder for this engine alone, and removes what an engine that was killed has left there.
    pub(crate) fn open(config: &Config) -> anyhow::Result<Self> {
        let temporary = if config.cache.is_none() {
            let created = TempDir::with_prefix("assay-files-");
            Some(created.context("cannot create a folder for files (ASSAY_ENGINE_CACHE)")?)
        } else {
            None
        };
        let given = config.cache.as_deref().or(temporary.as_ref().map(TempDir::path));
        let folder = given.context("the cache has no folder")?;
        let (folder, kept, lock) =
            open(folder).with_context(|| format!("cannot use the folder {}", folder.display()))?;
        let cache = Self {
            folder,
            most: u64::from(config.cache_gib) << 30,
            kept: Mutex::new(kept),
            turn: tokio::sync::Mutex::default(),
            _lock: lock,
            _temporary: temporary,
        };
        cache.make_room(0)?;
        Ok(cache)
    }

    /// Returns whether files are downloaded.
    pub(crate) fn is_enabled(&self) -> bool {
        self.most > 0
    }

    /// Creates a folder for the files of a test, on the file system of the cache.
    pub(crate) fn folder_of_test(&self) -> io::Result<TempDir> {
        TempDir::with_prefix_in("test-", self.folder.join(TESTS))
    }

    /// Puts a file of a lease at a path. Downloads it unless it is kept.
    pub(crate) async fn provide(
        &self,
        api: &Api,
        lease: &str,
        file: &LeasedFile,
        to: &Path,
    ) -> Result<(), Failure> {
        // The SHA-256 becomes a part of paths.
        if !is_sha256(&file.sha256) {
            return Err(Failure::unavailable(file, "its SHA-256 is not valid"));
        }
        if self.link(&file.sha256, to)? {
            return Ok(());
        }
        let _turn = self.turn.lock().await;
        if self.link(&file.sha256, to)? {
            return Ok(());
        }
        self.verify(&file.sha256).await?;
        if self.link(&file.sha256, to)? {
            return Ok(());
        }
        let size = u64::try_from(file.size).unwrap_or_default();
        if size > self.most {
            let limit = self.most >> 30;
            let problem =
                format!("it is larger than the cache, {limit} GiB (ASSAY_ENGINE_CACHE_GIB)");
            return Err(Failure::unavailable(file, &problem));
        }
        self.make_room(size)?;
        let part = NamedTempFile::with_prefix_in(PART, &self.folder)?;
        download::receive(api, lease, file, part.reopen()?).await?;
        self.keep(&file.sha256, size, part)?;
        if self.link(&file.sha256, to)? {
            return Ok(());
        }
        Err(io::Error::other("a file of the cache was changed").into())
    }

    /// Links a file to a path. Returns whether it is kept and unchanged; one that was changed is removed.
    fn link(&self, sha256: &str, to: &Path) -> io::Result<bool> {
        let mut kept = self.kept();
        let Some(entry) = kept.get_mut(sha256).filter(|entry| entry.modified.is_some()) else {
            return Ok(false);
        };
        let path = self.folder.join(sha256);
        let is_unchanged = fs::symlink_metadata(&path).is_ok_and(|found| {
            found.is_file() && found.len() == entry.size && found.modified().ok() == entry.modified
        });
        if is_unchanged {
            entry.used = SystemTime::now();
            fs::hard_link(&path, to)?;
        } else {
            tracing::warn!(file.sha256 = sha256, "a file of the cache was changed; removing it");
            kept.remove(sha256);
            remove(&path)?;
        }
        Ok(is_unchanged)
    }

    /// Compares the contents of a file that an earlier engine has kept with its name. Removes it if they differ.
    async fn verify(&self, sha256: &str) -> io::Result<()> {
        if !self.kept().contains_key(sha256) {
            return Ok(());
        }
        let path = self.folder.join(sha256);
        let of_file = path.clone();
        let found = spawn_blocking(move || {
            let modified = fs::symlink_metadata(&of_file)?.modified()?;
            let mut hash = Hash::default();
            io::copy(&mut File::open(&of_file)?, &mut hash)?;
            io::Result::Ok((hash.finish(), modified))
        });
        match found.await.map_err(io::Error::other)? {
            Ok((found, modified)) if found == sha256 => {
                if let Some(entry) = self.kept().get_mut(sha256) {
                    entry.modified = Some(modified);
                }
                Ok(())
            }
            _ => {
                self.kept().remove(sha256);
                remove(&path)
            }
        }
    }

    /// Removes the files whose last use was longest ago, until there is room for one of this size.
    fn make_room(&self, size: u64) -> io::Result<()> {
        let mut kept = self.kept();
        let mut total: u64 = kept.values().map(|entry| entry.size).sum();
        while total.saturating_add(size) > self.most {
            let oldest = kept.iter().min_by_key(|(_, entry)| entry.used);
            let Some((sha256, entry)) = oldest else { break };
            total -= entry.size;
            let sha256 = sha256.clone();
            remove(&self.folder.join(&sha256))?;
            kept.remove(&sha256);
        }
        Ok(())
    }

    /// Keeps a file that was downloaded and checked.
    fn keep(&self, sha256: &str, size: u64, part: NamedTempFile) -> io::Result<()> {
        part.as_file().set_permissions(Permissions::from_mode(0o444))?;
        let modified = Some(part.as_file().metadata()?.modified()?);
        part.persist(self.folder.join(sha256))?;
        let entry = Kept { size, modified, used: SystemTime::now() };
        self.kept().insert(sha256.to_owned(), entry);
        Ok(())
    }

    fn kept(&self) -> MutexGuard<'_, HashMap<String, Kept>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Name of the folder with the folders of tests. It is removed when an engine starts, so its name must not be that
/// of a folder which somebody has beside the cache.
const TESTS: &str = "assay-tests";

/// Prefix of files that are being downloaded. Those that were left are removed, too.
const PART: &str = "assay-part-";

/// Name of the file that is locked.
const LOCK: &str = "assay-lock";

/// Opens a folder that no other engine uses. Returns its absolute path, its files, and the lock.
fn open(folder: &Path) -> anyhow::Result<(PathBuf, HashMap<String, Kept>, File)> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let folder = folder.canonicalize()?;
    if folder.to_str().is_none() {
        bail!("its path is not UTF-8");
    }
    let lock = File::options().create(true).truncate(false).write(true).open(folder.join(LOCK))?;
    if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err() {
        bail!("another engine uses it: give each engine a folder of its own (ASSAY_ENGINE_CACHE)");
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
fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn is_sha256(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}
