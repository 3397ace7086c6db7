//! The directory that holds a cluster and its socket, and whom it belongs to.

use std::env;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use crate::account::Account;

/// Where clusters go whose account cannot reach the data directory.
const ELSEWHERE: &str = "/var/lib/assay";

/// What a socket's path can be long on every system: a hundred-odd bytes, on macOS the fewest.
const LONGEST_SOCKET_PATH: usize = 103;

/// A directory that only its account and root can enter, which is why nobody needs a password.
#[derive(Debug)]
pub(crate) struct Home {
    pub(crate) path: PathBuf,
    pub(crate) account: Account,
}

impl Home {
    /// Finds or makes the home that belongs to a data directory: `postgres` in it, or a link of
    /// that name if we are root and the account to drop to cannot get there.
    pub(crate) fn of(data: &Path) -> Result<Self> {
        let path = data.join("postgres");
        if let Ok(path) = path.canonicalize()
            && let Some(account) = Account::ours().or_else(|| Account::owner_of(&path))
        {
            return Ok(Self { path, account });
        }
        let account = Account::ours().map_or_else(Account::unprivileged, Ok)?;
        make(&path, account)?;
        if account.reaches(&path) {
            return Ok(Self { path, account });
        }
        fs::remove_dir(&path)?;
        let far = make_elsewhere(data, account)?;
        symlink(&far, &path)?;
        tracing::warn!(
            "PostgreSQL must not run as root, and others cannot reach {}: its files are in {}",
            data.display(),
            far.display(),
        );
        Ok(Self { path: far, account })
    }

    pub(crate) fn cluster(&self) -> PathBuf {
        self.path.join("cluster")
    }

    /// Makes the directory for the socket: in here unless the path gets too long for the system.
    pub(crate) fn make_socket_dir(&self) -> Result<PathBuf> {
        let meta = self.path.metadata()?;
        let short = format!("assay-{:x}-{:x}", meta.dev(), meta.ino());
        let homes =
            [(&*self.path, "socket"), (&env::temp_dir(), &short), (Path::new("/tmp"), &short)];
        let (home, name) = homes
            .into_iter()
            .find(|(home, name)| is_short_enough(&home.join(name)) && self.account.reaches(home))
            .with_context(|| {
                format!("there is no place for a socket of {}", self.path.display())
            })?;
        let dir = home.join(name);
        make(&dir, self.account)?;
        Ok(dir)
    }
}

fn is_short_enough(socket_dir: &Path) -> bool {
    socket_dir.join(".s.PGSQL.5432").as_os_str().len() <= LONGEST_SOCKET_PATH
}

/// Makes a directory for the account alone. One that is there already must be just that: anybody
/// can make directories in the temporary one.
fn make(dir: &Path, account: Account) -> Result<()> {
    let shown = dir.display();
    match fs::DirBuilder::new().mode(0o700).create(dir) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            let meta = dir.symlink_metadata()?;
            let theirs = Account::owner_of(dir).is_none_or(|owner| owner == account);
            let private = meta.is_dir() && meta.permissions().mode() & 0o777 == 0o700;
            ensure!(theirs && private, "{shown} is there, and not a private directory of ours");
        }
        made => made.with_context(|| format!("cannot make {shown}"))?,
    }
    account.own(dir)
}

/// Makes a directory that has its name from the data directory. A name that is taken belongs to a
/// data directory that was deleted or moved; what is in there is not ours to use or remove.
fn make_elsewhere(data: &Path, account: Account) -> Result<PathBuf> {
    fs::create_dir_all(ELSEWHERE)?;
    fs::set_permissions(ELSEWHERE, fs::Permissions::from_mode(0o755))?;
    let name = data.to_string_lossy().trim_matches('/').replace('/', "-");
    let names = (1..).map(|n| if n == 1 { name.clone() } else { format!("{name}-{n}") });
    let mut dirs = names.map(|name| Path::new(ELSEWHERE).join(name));
    let dir = dirs.find(|dir| !dir.exists()).context("no name is free")?;
    make(&dir, account)?;
    Ok(dir)
}
