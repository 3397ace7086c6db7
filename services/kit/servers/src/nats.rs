//! A private nats-server with `JetStream`.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Error, Result, bail};
use rustix::process::Signal;
use serde_json::Value;
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio::time::sleep;

use crate::DataDir;
use crate::leftover;
use crate::process::{POLL, Process, command, rotate};

const PROGRAM: &str = "nats-server";

/// Lets clients go and puts its store in order.
const STOP: Signal = Signal::TERM;

/// `JetStream` reads its store before the server answers.
const START_DEADLINE: Duration = Duration::from_secs(60);

/// Where packages put the program although it may not be on the PATH: Debian's, Homebrew's.
const PACKAGES: [&str; 3] = ["/usr/sbin", "/opt/homebrew/bin", "/usr/local/bin"];

/// A running nats-server that only this machine can reach.
#[derive(Debug)]
pub struct Nats {
    process: Process,
    address: String,
    pid_file: PathBuf,
    _data: DataDir,
}

impl Nats {
    /// Starts the server on a free port, its store in the data directory, and waits until it
    /// answers. The program is looked for unless given.
    pub async fn start(data: &DataDir, program: Option<&Path>) -> Result<Self> {
        let program = find(program)?;
        let dir = data.path().join("nats");
        fs::create_dir_all(&dir).with_context(|| format!("cannot make {}", dir.display()))?;
        Self::stop_left_behind(&dir).await?;

        let log = dir.join("nats.log");
        rotate(&log);
        let mut command = command(&program, &dir, STOP);
        command.args(["--jetstream", "--addr", "127.0.0.1", "--port", "-1"]);
        command.arg("--store_dir").arg(&dir).arg("--ports_file_dir").arg(&dir);
        let process = Process::spawn(PROGRAM, command, STOP, &log).await?;
        let pid_file = dir.join("nats.pid");
        fs::write(&pid_file, process.pid().to_string())?;

        let address = tokio::select! {
            address = answer(&dir, process.pid()) => address,
            failure = process.failed() => return Err(failure),
            () = sleep(START_DEADLINE) => bail!("{PROGRAM} does not answer; {}", process.last_words()),
        };
        Ok(Self { process, address, pid_file, _data: data.clone() })
    }

    /// Where clients find the server, such as `nats://127.0.0.1:41234`.
    pub fn url(&self) -> &str {
        &self.address
    }

    /// The id of the server's process.
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// Waits until the server ends without having been told to, and says why.
    pub async fn exited(&self) -> Error {
        self.process.failed().await
    }

    /// Stops the server and waits until it is gone.
    pub async fn stop(self) -> Result<()> {
        self.process.stop().await?;
        let _ = fs::remove_file(&self.pid_file);
        Ok(())
    }

    /// Stops the server that a killed process left in a directory with a `nats.pid`, if it runs.
    pub async fn stop_left_behind(dir: &Path) -> Result<()> {
        let pid_file = dir.join("nats.pid");
        if let Some(pid) = leftover::read_pid(&pid_file) {
            leftover::stop(pid, PROGRAM, dir, STOP).await?;
            let _ = fs::remove_file(ports_file(dir, pid.as_raw_nonzero().get().unsigned_abs()));
            let _ = fs::remove_file(pid_file);
        }
        Ok(())
    }
}

/// Waits until the server has told its port and greets who comes there.
async fn answer(dir: &Path, pid: u32) -> String {
    loop {
        if let Some(url) = told_url(&ports_file(dir, pid)) && greets(&url).await {
            return url;
        }
        sleep(POLL).await;
    }
}
