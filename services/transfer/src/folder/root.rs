//! The folder of an export. No symbolic link below it is followed, and nothing but files is opened.

use std::{
    fs::File,
    os::fd::OwnedFd,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};
use rustix::{
    fs::{AtFlags, Mode, OFlags, mkdirat, open, openat, renameat, unlinkat},
    io::Errno,
};

/// The permissions of new files and folders, which the system limits further.
const FILE: Mode = Mode::from_bits_truncate(0o666);
const FOLDER: Mode = Mode::from_bits_truncate(0o777);

const CLOSED: OFlags = OFlags::NOFOLLOW.union(OFlags::CLOEXEC);

/// An open folder.
pub(crate) struct Root {
    path: PathBuf,
    folder: OwnedFd,
}

impl Root {
    /// Opens a folder, whose own path may have links.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        let folder = open(path, OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty());
        let folder =
            folder.with_context(|| format!("cannot open the folder {}", path.display()))?;
        Ok(Self { path: path.to_owned(), folder })
    }

    /// Returns a path for people.
    pub(crate) fn at(&self, path: &str) -> String {
        self.path.join(path).display().to_string()
    }

    /// Opens a file to read it. `None` if there is none.
    pub(crate) fn read(&self, path: &str) -> Result<Option<File>> {
        let opened = self.in_parent(path, false, |folder, name| {
            // Opening a pipe would wait for its writer.
            openat(folder, name, CLOSED | OFlags::RDONLY | OFlags::NONBLOCK, Mode::empty())
        });
        match opened {
            Err(Errno::NOENT) => Ok(None),
            opened => self.file(path, opened, "read").map(Some),
        }
    }

    /// Creates a file in place of one that exists, with the folders above it.
    pub(crate) fn create(&self, path: &str) -> Result<File> {
        let opened = self.in_parent(path, true, |folder, name| {
            match unlinkat(folder, name, AtFlags::empty()) {
                Err(error) if error != Errno::NOENT => return Err(error),
                _ => {}
            }
            openat(folder, name, CLOSED | OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL, FILE)
        });
        self.file(path, opened, "write")
    }

    /// Opens a file to read it and to add to its end, and creates it if there is none.
    pub(crate) fn append(&self, path: &str) -> Result<File> {
        let flags = OFlags::RDWR | OFlags::APPEND | OFlags::CREATE | OFlags::NONBLOCK;
        let opened =
            self.in_parent(path, true, |folder, name| openat(folder, name, CLOSED | flags, FILE));
        self.file(path, opened, "write")
    }

    /// Gives a file another name in its folder. Returns whether there is such a file.
    pub(crate) fn rename(&self, from: &str, to: &str) -> Result<bool> {
        let name = to.rsplit('/').next().unwrap_or_default();
        let renamed =
            self.in_parent(from, false, |folder, from| renameat(folder, from, folder, name));
        match renamed {
            Err(Errno::NOENT) => Ok(false),
            renamed => {
                renamed.with_context(|| format!("cannot write {}", self.at(to)))?;
                Ok(true)
            }
        }
    }

    /// Calls `act` with the folder of a file and its name there.
    fn in_parent<T>(
        &self,
        path: &str,
        create: bool,
        act: impl FnOnce(&OwnedFd, &str) -> Result<T, Errno>,
    ) -> Result<T, Errno> {
        let (folders, name) = path.rsplit_once('/').unwrap_or(("", path));
        let mut parent: Option<OwnedFd> = None;
        for folder in folders.split('/').filter(|folder| !folder.is_empty()) {
            let above = parent.as_ref().unwrap_or(&self.folder);
            if create {
                match mkdirat(above, folder, FOLDER) {
                    Err(error) if error != Errno::EXIST => return Err(error),
                    _ => {}
                }
            }
            parent = Some(openat(above, folder, CLOSED | OFlags::DIRECTORY, Mode::empty())?);
        }
        act(parent.as_ref().unwrap_or(&self.folder), name)
    }

    fn file(&self, path: &str, opened: Result<OwnedFd, Errno>, verb: &str) -> Result<File> {
        let at = self.at(path);
        let file = match opened {
            Ok(file) => File::from(file),
            Err(Errno::LOOP | Errno::NOTDIR | Errno::MLINK) => {
                bail!("{at}: it, or a folder above it, is a symbolic link or not what it should be")
            }
            Err(error) => return Err(error).with_context(|| format!("cannot {verb} {at}")),
        };
        let is_file = file.metadata().with_context(|| format!("cannot {verb} {at}"))?.is_file();
        if !is_file {
            bail!("{at} is not a file");
        }
        Ok(file)
    }
}
