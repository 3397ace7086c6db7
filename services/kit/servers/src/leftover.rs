//! Servers that a killed process left running.

use std::fs;
use std::path::Path;

use anyhow::{Result, bail};
use rustix::process::Pid;
use tokio::process::Command;
use tokio::time::{Instant, sleep};

use crate::process::{POLL_INTERVAL, STOP_DEADLINE, Stop};

/// Reads a process id from the first line of a file.
pub(crate) fn read_pid(file: &Path) -> Option<Pid> {
    let text = fs::read_to_string(file).ok()?;
    Pid::from_raw(text.lines().next()?.trim().parse().ok().filter(|pid| *pid > 0)?)
}

/// Stops the process if it is `program` and runs in `dir`. The system reuses process ids, so the id
/// alone is not enough.
pub(crate) async fn stop(pid: Pid, program: &str, dir: &Path, stop: Stop) -> Result<()> {
    if !is_running_in(pid, program, dir).await {
        return Ok(());
    }
    tracing::info!("stopping {program} (pid {pid}), left running by an earlier run");
    stop.send(pid);

    let deadline = Instant::now() + STOP_DEADLINE;
    while is_running_in(pid, program, dir).await {
        if Instant::now() > deadline {
            bail!("{program} (pid {pid}), left running by an earlier run, does not stop");
        }
        sleep(POLL_INTERVAL).await;
    }
    Ok(())
}

async fn is_running_in(pid: Pid, program: &str, dir: &Path) -> bool {
    if cfg!(target_os = "linux") {
        let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        let cwd = fs::read_link(format!("/proc/{pid}/cwd")).unwrap_or_default();
        return name.starts_with(program) && dir.canonicalize().is_ok_and(|dir| dir == cwd);
    }
    let listing =
        Command::new("ps").args(["-ww", "-o", "command=", "-p", &pid.to_string()]).output().await;
    let line = listing.map(|ps| String::from_utf8_lossy(&ps.stdout).into_owned());
    line.is_ok_and(|line| line.contains(program) && line.contains(&*dir.to_string_lossy()))
}
