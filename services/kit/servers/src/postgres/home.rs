//! The directory of a cluster and its socket, and its owner.

use std::env;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use crate::account::Account;

/// Parent of clusters whose account cannot enter the data directory.
const FALLBACK_DIR: &str = "/var/lib/assay";

/// Maximum number of bytes in the path of a socket, the lowest of all systems (macOS).
const LONGEST_SOCKET_PATH: usize = 103;

/// A directory that only its account and root can enter. Passwords are therefore not needed.
#[derive(Debug)]
pub(crate) struct Home {
    pub(crate) path: PathBuf,
    pub(crate) account: Account,
}

impl Home {
    /// Finds or creates the home of a data directory: `postgres` in it, or a link of that name if
    /// this process is root and the unprivileged account cannot enter the data directory.
    pub(crate) fn of(data: &Path) -> Result<Self> {
        let path = data.join("postgres");
        if let Ok(path) = path.canonicalize()
            && let Some(account) = Account::current().or_else(|| Account::owner_of(&path))
        {
            return Ok(Self { path, account });
        }
        let account = Account::current().map_or_else(Account::unprivileged, Ok)?;
        create(&path, account)?;
        if account.can_enter(&path) {
            return Ok(Self { path, account });
        }
        fs::remove_dir(&path)?;
        let far = create_fallback(data, account)?;
        symlink(&far, &path)?;
        tracing::warn!(
            "PostgreSQL must not run as root, and other accounts cannot enter {}: its files are in {}",
            data.display(),
            far.display(),
        );
        Ok(Self { path: far, account })
    }

    pub(crate) fn cluster(&self) -> PathBuf {
        self.path.join("cluster")
    }

    /// Creates the directory of the socket: in this one, unless the path is too long for the
    /// system.
    pub(crate) fn make_socket_dir(&self) -> Result<PathBuf> {
        let meta = self.path.metadata()?;
        let short = format!("assay-{:x}-{:x}", meta.dev(), meta.ino());
        let homes =
            [(&*self.path, "socket"), (&env::temp_dir(), &short), (Path::new("/tmp"), &short)];
        let (home, name) = homes
            .into_iter()
            .find(|(home, name)| is_short_enough(&home.join(name)) && self.account.can_enter(home))
            .with_context(|| {
                format!("no directory is suitable for the socket of {}", self.path.display())
            })?;
        let dir = home.join(name);
        create(&dir, self.account)?;
        Ok(dir)
    }
}

fn is_short_enough(socket_dir: &Path) -> bool {
    socket_dir.join(".s.PGSQL.5432").as_os_str().len() <= LONGEST_SOCKET_PATH
}

/// Creates a directory that only the account can enter. An existing one must be private already,
/// since every user can create directories in the temporary one.
fn create(dir: &Path, account: Account) -> Result<()> {
    let shown = dir.display();
    match fs::DirBuilder::new().mode(0o700).create(dir) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            let meta = dir.symlink_metadata()?;
            let is_owned = Account::owner_of(dir).is_none_or(|owner| owner == account);
            let private = meta.is_dir() && meta.permissions().mode() & 0o777 == 0o700;
            ensure!(is_owned && private, "{shown} exists and is not private to this account");
        }
        made => made.with_context(|| format!("cannot create {shown}"))?,
    }
    account.own(dir)
}

/// Creates a directory named after the data directory. An existing directory of that name belongs
/// to a data directory that was deleted or moved, and is left alone.
fn create_fallback(data: &Path, account: Account) -> Result<PathBuf> {
    fs::create_dir_all(FALLBACK_DIR)?;
    fs::set_permissions(FALLBACK_DIR, fs::Permissions::from_mode(0o755))?;
    let name = data.to_string_lossy().trim_matches('/').replace('/', "-");
    let names = (1..).map(|n| if n == 1 { name.clone() } else { format!("{name}-{n}") });
    let mut dirs = names.map(|name| Path::new(FALLBACK_DIR).join(name));
    let dir = dirs.find(|dir| !dir.exists()).context("no name is free")?;
    create(&dir, account)?;
    Ok(dir)
}
