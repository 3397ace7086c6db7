//! Profiles of the programs.

use std::{path::Path, process::Stdio};

use anyhow::{Context, Result};
use rustix::process::{Pid, Signal, kill_process};
use tokio::process::{Child, Command};

/// Samples a second; not a divisor of common intervals of timers.
const FREQUENCY: &str = "--freq=499";

/// A running `perf record`.
pub(crate) struct Recording(Child);

impl Recording {
    /// Records these processes and the threads that they start.
    pub(crate) fn start(file: &Path, pids: &[u32]) -> Result<Self> {
        let pids: Vec<String> = pids.iter().map(u32::to_string).collect();
        let child = Command::new("perf")
            .args(["record", "--quiet", "--call-graph=fp", FREQUENCY, "--pid", &pids.join(",")])
            .arg("--output")
            .arg(file)
            .stdin(Stdio::null())
            .spawn()
            .context("cannot run perf; on Debian, it is in the package linux-perf")?;
        Ok(Self(child))
    }

    /// Ends the recording and waits until its file is complete.
    pub(crate) async fn stop(mut self) -> Result<()> {
        if let Some(pid) = self.0.id().and_then(|pid| Pid::from_raw(pid.cast_signed())) {
            kill_process(pid, Signal::INT)?;
        }
        self.0.wait().await?;
        Ok(())
    }
}
