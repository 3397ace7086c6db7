//! Search for the programs of PostgreSQL.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, bail, ensure};

use super::home::Home;
use crate::account::Account;

/// Directories of packages with several versions (Debian, Red Hat, Homebrew), and prefixes of the
/// names in them.
const PACKAGES: [(&str, &str); 5] = [
    ("/usr/lib/postgresql", ""),
    ("/usr", "pgsql-"),
    ("/opt/homebrew/opt", "postgresql@"),
    ("/usr/local/opt", "postgresql@"),
    ("/home/linuxbrew/.linuxbrew/opt", "postgresql@"),
];

/// The programs of one version of PostgreSQL.
#[derive(Debug)]
pub(crate) struct Programs {
    pub(crate) postgres: PathBuf,
    pub(crate) initdb: PathBuf,
}

impl Programs {
    /// Finds programs that the home's account can run, in `dir` or in the usual directories. Their
    /// version must be that of the cluster, if it exists.
    pub(crate) fn find(dir: Option<&Path>, home: &Home) -> Result<Self> {
        let cluster = home.cluster();
        let created_by = fs::read_to_string(cluster.join("PG_VERSION")).ok();
        let created_by = created_by.as_deref().map(str::trim);

        let mut others = Vec::new();
        for dir in dir.map_or_else(search_path, |dir| vec![dir.to_owned()]) {
            let found = Self { postgres: dir.join("postgres"), initdb: dir.join("initdb") };
            let Some(version) = found.version(home.account) else { continue };
            if created_by.is_none_or(|created_by| created_by == version) {
                return Ok(found);
            }
            others.push(version);
        }

        let at = dir.map(|dir| format!(" in {}", dir.display())).unwrap_or_default();
        ensure!(
            !others.is_empty(),
            "PostgreSQL server not found{at}: apt-get install postgresql (Debian, Ubuntu) \
             or brew install postgresql@17 (macOS)"
        );
        bail!(
            "the data in {} was created by PostgreSQL {}, but only {} is installed{at}",
            cluster.display(),
            created_by.unwrap_or_default(),
            others.join(", "),
        )
    }

    /// Returns the major version, if the programs exist and run.
    fn version(&self, account: Account) -> Option<String> {
        let mut command = Command::new(&self.postgres);
        command.arg("--version").current_dir("/");
        let output = account.assign(&mut command).output().ok()?;
        let text = String::from_utf8(output.stdout).ok()?;
        self.initdb.is_file().then(|| major(&text))?
    }
}

/// Returns 15 for `postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)`.
fn major(version: &str) -> Option<String> {
    let number = version.split_whitespace().nth(2)?;
    number.split(|digit: char| !digit.is_ascii_digit()).next().map(str::to_owned)
}

/// Returns directories in which the programs may be, in order of preference.
fn search_path() -> Vec<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let mut dirs: Vec<_> = env::split_paths(&path).collect();
    for (dir, prefix) in PACKAGES {
        dirs.extend(newest_first(Path::new(dir), prefix).map(|dir| dir.join("bin")));
    }
    dirs
}

fn newest_first(dir: &Path, prefix: &str) -> impl Iterator<Item = PathBuf> {
    let mut versions: Vec<(u32, PathBuf)> = fs::read_dir(dir)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| {
            let version = entry.file_name().to_str()?.strip_prefix(prefix)?.parse().ok()?;
            Some((version, entry.path()))
        })
        .collect();
    versions.sort_unstable_by_key(|(version, _)| std::cmp::Reverse(*version));
    versions.into_iter().map(|(_, path)| path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_packages_are_parsed() {
        assert_eq!(major("postgres (PostgreSQL) 15.18 (Debian 15.18-0)").as_deref(), Some("15"));
        assert_eq!(major("postgres (PostgreSQL) 18beta1\n").as_deref(), Some("18"));
        assert_eq!(major("something else"), None);
    }
}
