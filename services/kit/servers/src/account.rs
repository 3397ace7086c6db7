//! The account of PostgreSQL, which refuses to run as root.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result};
use rustix::process::{getegid, geteuid};

/// Unprivileged accounts in order of preference.
const UNPRIVILEGED: [&str; 2] = ["postgres", "nobody"];

/// An account of this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Account {
    uid: u32,
    gid: u32,
}

impl Account {
    /// Returns the account of this process, unless it is root.
    pub(crate) fn current() -> Option<Self> {
        let uid = geteuid();
        (!uid.is_root()).then(|| Self { uid: uid.as_raw(), gid: getegid().as_raw() })
    }

    /// Returns the owner of a file or directory, unless it is root.
    pub(crate) fn owner_of(path: &Path) -> Option<Self> {
        let meta = path.metadata().ok()?;
        (meta.uid() != 0).then(|| Self { uid: meta.uid(), gid: meta.gid() })
    }

    /// Returns an unprivileged account for a server.
    pub(crate) fn unprivileged() -> Result<Self> {
        let accounts = fs::read_to_string("/etc/passwd").context("cannot read /etc/passwd")?;
        UNPRIVILEGED.iter().find_map(|name| Self::listed(&accounts, name)).context(
            "PostgreSQL does not run as root, and neither the user postgres nor nobody exists",
        )
    }

    /// Finds `name:password:uid:gid:…` in the text of /etc/passwd.
    fn listed(accounts: &str, name: &str) -> Option<Self> {
        accounts.lines().find_map(|line| {
            let mut fields = line.split(':');
            let found = fields.next()? == name;
            let uid = fields.nth(1)?.parse().ok()?;
            let gid = fields.next()?.parse().ok()?;
            found.then_some(Self { uid, gid })
        })
    }

    /// Makes the command run under this account.
    pub(crate) fn assign(self, command: &mut Command) -> &mut Command {
        if Self::current() == Some(self) { command } else { command.uid(self.uid).gid(self.gid) }
    }

    /// Whether this account can enter the directory and its parents.
    pub(crate) fn can_enter(self, dir: &Path) -> bool {
        let mut probe = Command::new("true");
        probe.current_dir(dir).stdin(Stdio::null());
        self.assign(&mut probe).status().is_ok_and(|status| status.success())
    }

    /// Makes the account the only one with access to a directory.
    pub(crate) fn own(self, dir: &Path) -> Result<()> {
        fs::set_permissions(dir, fs::Permissions::from_mode(0o700))
            .and_then(|()| chown(dir, Some(self.uid), Some(self.gid)))
            .with_context(|| format!("cannot change the owner of {}", dir.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accounts_are_found_by_name() {
        let accounts =
            "root:x:0:0:root:/root:/bin/sh\n\nnobody:x:65534:65533:nobody:/:/bin/false\n";
        assert_eq!(Account::listed(accounts, "nobody"), Some(Account { uid: 65534, gid: 65533 }));
        assert_eq!(Account::listed(accounts, "postgres"), None);
    }
}
