//! Server processes, which end on request and with this process.

use std::env;
use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Error, Result, anyhow, bail};
use rustix::process::{Pid, Signal, kill_process};
use tokio::sync::{oneshot, watch};
use tokio::time::timeout;

/// Maximum time until a server has stopped.
pub(crate) const STOP_DEADLINE: Duration = Duration::from_mins(1);

/// Interval of polls for conditions without a notification.
pub(crate) const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Number of lines of a log in an error message.
const LAST_LINES: usize = 12;

/// The signal that stops a server gracefully.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Stop {
    Interrupt,
    Terminate,
}

impl Stop {
    fn name(self) -> &'static str {
        match self {
            Self::Interrupt => "INT",
            Self::Terminate => "TERM",
        }
    }

    /// Sends the signal, if the process still exists.
    pub(crate) fn send(self, pid: Pid) {
        let signal = match self {
            Self::Interrupt => Signal::INT,
            Self::Terminate => Signal::TERM,
        };
        let _ = kill_process(pid, signal);
    }
}

/// A running server.
#[derive(Debug)]
pub(crate) struct Process {
    name: &'static str,
    pid: Pid,
    stop: Stop,
    log: PathBuf,
    /// `None` while the process runs. Closed when it has exited.
    status: watch::Receiver<Option<ExitStatus>>,
}

impl Process {
    /// Starts a command from [`command`], and appends its output to the log.
    pub(crate) async fn spawn(
        name: &'static str,
        mut command: Command,
        stop: Stop,
        log: &Path,
    ) -> Result<Self> {
        let output = File::options().create(true).append(true).open(log)?;
        command.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output);

        let (ended, status) = watch::channel(None);
        let (started, pid) = oneshot::channel();
        // The kernel signals the death of the parent when the *thread* that started the child ends,
        // so this thread lives as long as the child.
        thread::Builder::new().name(name.to_owned()).spawn(move || match command.spawn() {
            Ok(mut child) => {
                let _ = started.send(Ok(Pid::from_child(&child)));
                ended.send_replace(child.wait().ok());
            }
            Err(error) => {
                let _ = started.send(Err(error));
            }
        })?;
        let pid = pid.await?.with_context(|| format!("cannot start {name}"))?;
        Ok(Self { name, pid, stop, log: log.to_owned(), status })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.pid.as_raw_nonzero().get().unsigned_abs()
    }

    /// Waits until the process has exited.
    pub(crate) async fn ended(&self) -> Option<ExitStatus> {
        self.status.clone().wait_for(Option::is_some).await.ok().and_then(|status| *status)
    }

    /// Waits until the process has exited, and returns that as an error.
    pub(crate) async fn failed(&self) -> Error {
        let status = self.ended().await.map(|status| status.to_string()).unwrap_or_default();
        anyhow!("{} has ended ({status}); {}", self.name, self.log_tail())
    }

    /// Stops the process, and waits until it has exited.
    pub(crate) async fn stop(&self) -> Result<()> {
        self.signal_stop();
        if timeout(STOP_DEADLINE, self.ended()).await.is_err() {
            bail!("{} (pid {}) does not stop; {}", self.name, self.pid(), self.log_tail());
        }
        Ok(())
    }

    /// Returns the end of the log, for an error message.
    pub(crate) fn log_tail(&self) -> String {
        let text = fs::read(&self.log).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<_> = text.trim_end().lines().collect();
        let last = &lines[lines.len().saturating_sub(LAST_LINES)..];
        format!("its log {} ends with:\n{}", self.log.display(), last.join("\n"))
    }

    fn signal_stop(&self) {
        if self.status.borrow().is_none() && self.status.has_changed().is_ok() {
            self.stop.send(self.pid);
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.signal_stop();
    }
}

/// Prepares the command of a server. It runs in its own process group, so that Ctrl-C reaches only
/// this process, which stops servers in order. Its environment has no secrets. The kernel stops it
/// when this process dies, if the system supports that.
pub(crate) fn command(program: &Path, dir: &Path, stop: Stop) -> Command {
    let mut command = if let Some(mut wrapper) = end_with_parent(stop) {
        wrapper.arg(program);
        wrapper
    } else {
        Command::new(program)
    };
    command.current_dir(dir).process_group(0);
    command.env_clear().env("LC_ALL", "C").env("PATH", env::var_os("PATH").unwrap_or_default());
    command
}

/// Returns `setpriv` of util-linux, if it is installed and can request a signal on the death of
/// this process.
fn end_with_parent(stop: Stop) -> Option<Command> {
    let wrapper = || {
        let mut setpriv = Command::new("setpriv");
        setpriv.arg("--pdeathsig").arg(stop.name());
        setpriv
    };
    let works = wrapper().arg("true").output().is_ok_and(|output| output.status.success());
    works.then(wrapper)
}

/// Renames the log of the last run, so that error messages quote only the current one.
pub(crate) fn rotate(log: &Path) {
    // Fails before the first run.
    let _ = fs::rename(log, log.with_extension("log.old"));
}
