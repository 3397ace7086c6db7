//! PostgreSQL clusters (data directories): creation, and takeover from a killed process.

use std::fs;
use std::path::Path;
use std::process;

use anyhow::{Context, Result, bail};
use rustix::process::test_kill_process;
use tokio::time::timeout;

use super::home::Home;
use super::programs::Programs;
use super::{Durability, PROGRAM, ROLE, START_DEADLINE};
use crate::leftover;
use crate::process::{Process, Stop, command};

/// Prefix of the names of unfinished clusters, followed by a process id.
const UNFINISHED: &str = "cluster.new-";

/// Character classes of all languages. Texts are still compared byte by byte.
const CHARACTERS: &str = if cfg!(target_os = "macos") { "UTF-8" } else { "C.UTF-8" };

/// Creates a cluster completely or not at all.
pub(super) async fn initialize(
    programs: &Programs,
    home: &Home,
    durability: Durability,
    log: &Path,
) -> Result<()> {
    remove_unfinished(home)?;
    let new = home.path.join(format!("{UNFINISHED}{}", process::id()));
    let mut command = command(&programs.initdb, &home.path, Stop::Interrupt);
    home.account.assign(&mut command);
    command.args(["--encoding=UTF8", "--locale=C", "--auth=trust", "--no-instructions"]);
    command.arg("--lc-ctype").arg(CHARACTERS);
    command.arg("--username").arg(ROLE).arg("--pgdata").arg(&new);
    if durability == Durability::None {
        command.arg("--no-sync");
    }
    let process = Process::spawn("initdb", command, Stop::Interrupt, log).await?;
    let Ok(status) = timeout(START_DEADLINE, process.ended()).await else {
        bail!("initdb does not finish; {}", process.log_tail());
    };
    if !status.is_some_and(|status| status.success()) {
        return Err(process.failed().await);
    }
    fs::rename(&new, home.cluster()).context("cannot rename the new cluster")
}

/// Removes clusters that killed runs did not finish. Their initdb may be removing them too.
fn remove_unfinished(home: &Home) -> Result<()> {
    for entry in fs::read_dir(&home.path)? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with(UNFINISHED) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
    Ok(())
}

/// Stops the server that a killed process left running on the cluster.
pub(super) async fn stop_left_behind(cluster: &Path) -> Result<()> {
    let file = cluster.join("postmaster.pid");
    let Some(pid) = leftover::read_pid(&file) else { return Ok(()) };
    leftover::stop(pid, PROGRAM, cluster, Stop::Interrupt).await?;

    // If another process has this id now, PostgreSQL refuses to start. It ignores the id of its own
    // parent, and needs the rest of the file.
    if let Ok(text) = fs::read_to_string(&file)
        && test_kill_process(pid).is_ok()
        && let Some((_, rest)) = text.split_once('\n')
    {
        fs::write(&file, format!("{}\n{rest}", process::id()))?;
    }
    Ok(())
}
