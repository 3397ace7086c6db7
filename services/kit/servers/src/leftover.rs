//! Servers that a killed run left behind.

use std::fs;
use std::path::Path;

use anyhow::{Result, bail};
use rustix::process::Pid;
use tokio::process::Command;
use tokio::time::{Instant, sleep};

use crate::process::{POLL, STOP_DEADLINE, Stop};

/// A process id in the first line of a file.
pub(crate) fn read_pid(file: &Path) -> Option<Pid> {
    let text = fs::read_to_string(file).ok()?;
    Pid::from_raw(text.lines().next()?.trim().parse().ok().filter(|pid| *pid > 0)?)
}

/// Stops the process if it is `program`, at work in `dir`. Numbers of processes are used again, so
/// a number alone proves nothing.
pub(crate) async fn stop(pid: Pid, program: &str, dir: &Path, stop: Stop) -> Result<()> {
    if !is_at_work(pid, program, dir).await {
        return Ok(());
    }
    tracing::info!("stopping the {program} (pid {pid}) that an earlier run left behind");
    stop.send(pid);

    let deadline = Instant::now() + STOP_DEADLINE;
    while is_at_work(pid, program, dir).await {
        if Instant::now() > deadline {
            bail!("{program} (pid {pid}), left behind by an earlier run, does not stop");
        }
        sleep(POLL).await;
    }
    Ok(())
}

async fn is_at_work(pid: Pid, program: &str, dir: &Path) -> bool {
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
