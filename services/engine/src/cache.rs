//! Files of leases, kept by their SHA-256, so that each is downloaded once.
//!
//! Tests get links to the files, which are read-only. So a file can be removed from the cache while a test uses
//! it, and one that a test has changed regardless is recognized by its time, and downloaded again.

mod folder;

use std::{
    collections::HashMap,
    fs::{self, File, Permissions},
    io,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::SystemTime,
};

use anyhow::Context;
use assay_proto::execution::LeasedFile;
use tempfile::{NamedTempFile, TempDir};
use tokio::{sync::Semaphore, task::spawn_blocking};

use self::folder::{Kept, PART, TESTS, is_sha256, remove};
use crate::{
    api::Api,
    config::Config,
    download::{self, Failure, Hash},
};

/// Number of files that are downloaded at once.
const TURNS: u32 = 4;

/// The files that are kept, in a folder of at most `most` bytes.
pub(crate) struct Cache {
    folder: PathBuf,
    most: u64,
    contents: Mutex<Contents>,
    /// Turns to download a file. One of more than a quarter of the folder takes all turns, so that files that are
    /// downloaded at once always fit into it.
    turns: Semaphore,
    /// Locked while this engine uses the folder.
    _lock: File,
    /// The folder, if it ends with the engine.
    _temporary: Option<TempDir>,
}

#[derive(Default)]
struct Contents {
    /// Files by their SHA-256.
    kept: HashMap<String, Kept>,
    /// Size of the files that are being downloaded, in bytes.
    arriving: u64,
    /// Locks of files that tests wait for, by SHA-256: each file is verified and downloaded by one of them.
    files: HashMap<String, Weak<tokio::sync::Mutex<()>>>,
}

/// Room for a file that is being downloaded.
struct Room<'a> {
    cache: &'a Cache,
    size: u64,
}

impl Drop for Room<'_> {
    fn drop(&mut self) {
        self.cache.contents().arriving -= self.size;
    }
}

impl Cache {
    /// Opens the folder for this engine alone, and removes what an engine that was killed has left there. `None` if no
    /// files are to be downloaded, in which case no folder is made.
    pub(crate) fn open(config: &Config) -> anyhow::Result<Option<Self>> {
        if config.cache_gib == 0 {
            return Ok(None);
        }
        let temporary = if config.cache.is_none() {
            let created = TempDir::with_prefix("assay-files-");
            Some(created.context("cannot create a folder for files (ASSAY_ENGINE_CACHE)")?)
        } else {
            None
        };
        let given = config.cache.as_deref().or(temporary.as_ref().map(TempDir::path));
        let folder = given.context("the cache has no folder")?;
        let (folder, kept, lock) = folder::open(folder)
            .with_context(|| format!("cannot use the folder {}", folder.display()))?;
        let cache = Self {
            folder,
            most: u64::from(config.cache_gib) << 30,
            contents: Mutex::new(Contents { kept, ..Contents::default() }),
            turns: Semaphore::new(TURNS as usize),
            _lock: lock,
            _temporary: temporary,
        };
        cache.make_room(0).map(drop)?;
        Ok(Some(cache))
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
        let file_lock = self.lock_of(&file.sha256);
        let _locked = file_lock.lock().await;
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
        let turns = if size > self.most / u64::from(TURNS) { TURNS } else { 1 };
        let _turns = self.turns.acquire_many(turns).await.map_err(io::Error::other)?;
        let mut room = self.make_room(size)?;
        let part = NamedTempFile::with_prefix_in(PART, &self.folder)?;
        download::receive(api, lease, file, part.reopen()?).await?;
        Ok(self.keep(&file.sha256, part, &mut room, to)?)
    }

    /// Returns the lock of a file.
    fn lock_of(&self, sha256: &str) -> Arc<tokio::sync::Mutex<()>> {
        let mut contents = self.contents();
        let files = &mut contents.files;
        if let Some(lock) = files.get(sha256).and_then(Weak::upgrade) {
            return lock;
        }
        files.retain(|_, lock| lock.strong_count() > 0);
        let lock = Arc::default();
        files.insert(sha256.to_owned(), Arc::downgrade(&lock));
        lock
    }

    /// Links a file to a path. Returns whether it is kept and unchanged; one that was changed is removed.
    fn link(&self, sha256: &str, to: &Path) -> io::Result<bool> {
        let mut contents = self.contents();
        let kept = &mut contents.kept;
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
        if !self.contents().kept.contains_key(sha256) {
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
                if let Some(entry) = self.contents().kept.get_mut(sha256) {
                    entry.modified = Some(modified);
                }
                Ok(())
            }
            _ => {
                self.contents().kept.remove(sha256);
                remove(&path)
            }
        }
    }

    /// Removes the files whose last use was longest ago, until there is room for one of this size.
    fn make_room(&self, size: u64) -> io::Result<Room<'_>> {
        let mut contents = self.contents();
        let Contents { kept, arriving, .. } = &mut *contents;
        let mut total = *arriving + kept.values().map(|entry| entry.size).sum::<u64>();
        while total.saturating_add(size) > self.most {
            let oldest = kept.iter().min_by_key(|(_, entry)| entry.used);
            let Some((sha256, entry)) = oldest else { break };
            total -= entry.size;
            let sha256 = sha256.clone();
            remove(&self.folder.join(&sha256))?;
            kept.remove(&sha256);
        }
        *arriving += size;
        Ok(Room { cache: self, size })
    }

    /// Keeps a file that was downloaded and checked, and links it to a path.
    fn keep(
        &self,
        sha256: &str,
        part: NamedTempFile,
        room: &mut Room<'_>,
        to: &Path,
    ) -> io::Result<()> {
        part.as_file().set_permissions(Permissions::from_mode(0o444))?;
        let modified = Some(part.as_file().metadata()?.modified()?);
        let path = self.folder.join(sha256);
        part.persist(&path)?;
        let mut contents = self.contents();
        let size = std::mem::take(&mut room.size);
        contents.arriving -= size;
        let entry = Kept { size, modified, used: SystemTime::now() };
        contents.kept.insert(sha256.to_owned(), entry);
        fs::hard_link(&path, to)
    }

    fn contents(&self) -> MutexGuard<'_, Contents> {
        self.contents.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cache() -> Cache {
        let config = Config::of(&["--cache-gib", "1", "--", "true"]).unwrap();
        Cache::open(&config).unwrap().unwrap()
    }

    fn kept(size: u64, nr: u64) -> Kept {
        let used = SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(nr);
        Kept { size, modified: None, used }
    }

    #[test]
    fn there_is_room_for_files_that_arrive_at_once() {
        let (cache, quarter) = (cache(), 1 << 28);
        for nr in 0..4 {
            cache.contents().kept.insert(nr.to_string(), kept(quarter, nr));
        }
        let rooms = [quarter; 2].map(|size| cache.make_room(size).unwrap());
        let mut left: Vec<_> = cache.contents().kept.keys().cloned().collect();
        left.sort_unstable();
        assert_eq!(left, ["2", "3"], "the oldest are removed");
        assert_eq!(cache.contents().arriving, 2 * quarter);
        drop(rooms);
        assert_eq!(cache.contents().arriving, 0, "a download that failed leaves nothing");
    }

    #[test]
    fn tests_that_wait_for_one_file_share_its_lock() {
        let cache = cache();
        let lock = cache.lock_of("a");
        assert!(Arc::ptr_eq(&lock, &cache.lock_of("a")));
        let other = cache.lock_of("b");
        assert!(!Arc::ptr_eq(&lock, &other));
        drop((lock, other));
        let _last = cache.lock_of("c");
        assert_eq!(cache.contents().files.len(), 1, "locks are not kept");
    }
}
