//! A cluster, as PostgreSQL calls the directory of its data: making one, and taking one over.

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

/// What names of unfinished clusters start with; the id of a process follows.
const UNFINISHED: &str = "cluster.new-";

/// Knows the upper and lower case of every language; texts are compared byte by byte all the same.
const CHARACTERS: &str = if cfg!(target_os = "macos") { "UTF-8" } else { "C.UTF-8" };

/// Makes a cluster, which is there completely or not at all.
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
        bail!("initdb does not end; {}", process.last_words());
    };
    if !status.is_some_and(|status| status.success()) {
        return Err(process.failed().await);
    }
    fs::rename(&new, home.cluster()).context("cannot put the new cluster in place")
}

/// Removes clusters that killed runs did not finish. Their initdb may just be doing so itself.
fn remove_unfinished(home: &Home) -> Result<()> {
    for entry in fs::read_dir(&home.path)? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with(UNFINISHED) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
    Ok(())
}

/// Stops what a killed run left at work on the cluster.
pub(super) async fn stop_left_behind(cluster: &Path) -> Result<()> {
    let file = cluster.join("postmaster.pid");
    let Some(pid) = leftover::read_pid(&file) else { return Ok(()) };
    leftover::stop(pid, PROGRAM, cluster, Stop::Interrupt).await?;

    // Still the number of a process, then of another one: PostgreSQL would not start beside it.
    // Its parent's number it knows for wrong, and it needs the rest of the file.
    if let Ok(text) = fs::read_to_string(&file)
        && test_kill_process(pid).is_ok()
        && let Some((_, rest)) = text.split_once('\n')
    {
        fs::write(&file, format!("{}\n{rest}", process::id()))?;
    }
    Ok(())
}
