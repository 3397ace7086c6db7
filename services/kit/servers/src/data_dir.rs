//! The directory of persistent data, locked by one process at a time.

use std::fs::{self, File, TryLockError};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::Arc;

use anyhow::{Context, Result, bail};

/// A directory that is locked against other processes as long as this value, a clone of it or a
/// server started in it exists. The servers store data in `postgres` and `nats`, and log to
/// `postgres.log` and `nats.log`.
#[derive(Clone, Debug)]
pub struct DataDir {
    path: PathBuf,
    /// Lock, which the system releases when the process ends for any reason.
    _lock: Arc<File>,
}

impl DataDir {
    /// Locks the directory, and creates it if it does not exist. Fails if another process has
    /// locked it.
    pub fn lock(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let shown = path.display();
        fs::create_dir_all(path).with_context(|| format!("cannot create the directory {shown}"))?;

        let lock_path = path.join("lock");
        let mut lock = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&lock_path)
            .with_context(|| format!("cannot write to {shown}"))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let pid = fs::read_to_string(&lock_path).unwrap_or_default();
                let pid = pid.trim();
                bail!(
                    "another assay uses {shown} (pid {pid}): stop it or choose another directory"
                );
            }
            Err(TryLockError::Error(error)) => {
                return Err(error).with_context(|| format!("cannot lock {shown}"));
            }
        }
        lock.set_len(0)?;
        writeln!(lock, "{}", process::id())?;

        Ok(Self { path: path.canonicalize()?, _lock: Arc::new(lock) })
    }

    /// Returns the absolute path, without symbolic links.
    pub fn path(&self) -> &Path {
        &self.path
    }
}
