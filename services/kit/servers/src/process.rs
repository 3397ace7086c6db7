//! A server as a process: it ends when it is told to, and when we do.

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

/// How long a server may take to put its affairs in order.
pub(crate) const STOP_DEADLINE: Duration = Duration::from_mins(1);

/// How often a condition is looked at that nobody reports.
pub(crate) const POLL: Duration = Duration::from_millis(20);

/// As many lines of a log as tell why a server ended.
const LAST_LINES: usize = 12;

/// What makes a server stop in good order.
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

    /// Sends the signal; a process that is gone already needs none.
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
    /// Nothing while it runs; closed once it has ended.
    status: watch::Receiver<Option<ExitStatus>>,
}

impl Process {
    /// Starts a command made by [`command`]; what it says is appended to the log.
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
        // A child is told of its parent's death when the *thread* that started it ends; this one
        // lasts as long as the child.
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

    /// Waits until the process has ended.
    pub(crate) async fn ended(&self) -> Option<ExitStatus> {
        self.status.clone().wait_for(Option::is_some).await.ok().and_then(|status| *status)
    }

    /// Waits until the process has ended, and says so as the failure that this is.
    pub(crate) async fn failed(&self) -> Error {
        let status = self.ended().await.map(|status| status.to_string()).unwrap_or_default();
        anyhow!("{} has ended ({status}); {}", self.name, self.last_words())
    }

    /// Tells the process to stop, and waits until it has.
    pub(crate) async fn stop(&self) -> Result<()> {
        self.tell_to_stop();
        if timeout(STOP_DEADLINE, self.ended()).await.is_err() {
            bail!("{} (pid {}) does not stop; {}", self.name, self.pid(), self.last_words());
        }
        Ok(())
    }

    /// The end of the log, for an error message.
    pub(crate) fn last_words(&self) -> String {
        let text = fs::read(&self.log).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<_> = text.trim_end().lines().collect();
        let last = &lines[lines.len().saturating_sub(LAST_LINES)..];
        format!("its log {} ends with:\n{}", self.log.display(), last.join("\n"))
    }

    fn tell_to_stop(&self) {
        if self.status.borrow().is_none() && self.status.has_changed().is_ok() {
            self.stop.send(self.pid);
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.tell_to_stop();
    }
}

/// Prepares a server program: in its own process group, so that Ctrl-C reaches only us and we
/// stop servers in order; with a bare environment, which holds neither secrets nor surprises; and
/// stopped by the kernel if we die, where the system has the means.
pub(crate) fn command(program: &Path, dir: &Path, stop: Stop) -> Command {
    let mut command = if let Some(mut wrapper) = end_with_us(stop) {
        wrapper.arg(program);
        wrapper
    } else {
        Command::new(program)
    };
    command.current_dir(dir).process_group(0);
    command.env_clear().env("LC_ALL", "C").env("PATH", env::var_os("PATH").unwrap_or_default());
    command
}

/// util-linux' `setpriv`, if it is here and can have the kernel send a signal when we die.
fn end_with_us(stop: Stop) -> Option<Command> {
    let wrapper = || {
        let mut setpriv = Command::new("setpriv");
        setpriv.arg("--pdeathsig").arg(stop.name());
        setpriv
    };
    let works = wrapper().arg("true").output().is_ok_and(|output| output.status.success());
    works.then(wrapper)
}

/// Puts the log of the last run aside, so that what we read in it is of this one.
pub(crate) fn rotate(log: &Path) {
    // There is none before the first run.
    let _ = fs::rename(log, log.with_extension("log.old"));
}
