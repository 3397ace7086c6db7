//! A private nats-server with JetStream.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Error, Result, bail};
use serde_json::Value;
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio::time::sleep;

use crate::DataDir;
use crate::leftover;
use crate::process::{POLL_INTERVAL, Process, Stop, command, rotate};

const PROGRAM: &str = "nats-server";

/// Maximum duration of a start. JetStream reads its store before the server responds.
const START_DEADLINE: Duration = Duration::from_mins(1);

/// Directories in which packages install the program, which may not be on the PATH.
const PACKAGES: [&str; 3] = ["/usr/sbin", "/opt/homebrew/bin", "/usr/local/bin"];

/// A running nats-server that is only reachable from this machine.
#[derive(Debug)]
pub struct Nats {
    process: Process,
    url: String,
    dir: PathBuf,
    _data: DataDir,
}

impl Nats {
    /// Starts the server on a free port, with its store in the data directory, and waits until it
    /// responds. Searches for the program unless it is given.
    pub async fn start(data: &DataDir, program: Option<&Path>) -> Result<Self> {
        Self::run(data, program, |_| {}).await
    }

    /// Starts the server with a configuration file, whose variables have these values.
    pub async fn start_with(
        data: &DataDir,
        config: &Path,
        variables: &[(&str, &str)],
    ) -> Result<Self> {
        let configure = |command: &mut Command| {
            command.arg("--config").arg(config).envs(variables.iter().copied());
        };
        Self::run(data, None, configure).await
    }

    async fn run(
        data: &DataDir,
        program: Option<&Path>,
        configure: impl FnOnce(&mut Command),
    ) -> Result<Self> {
        let program = find(program)?;
        let dir = data.path().join("nats");
        Self::stop_left_behind(&dir).await?;
        let ports = dir.join("ports");
        fs::create_dir_all(&ports).with_context(|| format!("cannot create {}", ports.display()))?;

        let log = data.path().join("nats.log");
        rotate(&log);
        let mut command = command(&program, &dir, Stop::Terminate);
        command.args(["--jetstream", "--addr", "127.0.0.1", "--port", "-1"]);
        command.arg("--store_dir").arg(&dir).arg("--ports_file_dir").arg(&ports);
        configure(&mut command);
        let process = Process::spawn(PROGRAM, command, Stop::Terminate, &log).await?;
        fs::write(pid_file(&dir), process.pid().to_string())?;

        let url = tokio::select! {
            url = wait_until_ready(&ports) => url,
            failure = process.failed() => return Err(failure),
            () = sleep(START_DEADLINE) => bail!("{PROGRAM} does not respond; {}", process.log_tail()),
        };
        Ok(Self { process, url, dir, _data: data.clone() })
    }

    /// Returns the URL of the server, such as `nats://127.0.0.1:41234`, or `tls://…` if TLS is
    /// configured. The port differs with every start.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Returns the URL of the server that another process runs in a data directory.
    pub fn url_of_running(data: &Path) -> Result<String> {
        written_url(&data.join("nats/ports"))
            .with_context(|| format!("no {PROGRAM} runs in {}", data.display()))
    }

    /// Returns the id of the server's process.
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// Waits until the server exits unexpectedly, and returns the error.
    pub async fn exited(&self) -> Error {
        self.process.failed().await
    }

    /// Stops the server and waits until it has exited.
    pub async fn stop(self) -> Result<()> {
        self.process.stop().await?;
        remove_run_files(&self.dir);
        Ok(())
    }

    /// Stops the server that a killed process left running in a directory with a `nats.pid`, if
    /// any.
    pub async fn stop_left_behind(dir: &Path) -> Result<()> {
        if let Some(pid) = leftover::read_pid(&pid_file(dir)) {
            leftover::stop(pid, PROGRAM, dir, Stop::Terminate).await?;
        }
        remove_run_files(dir);
        Ok(())
    }
}

fn pid_file(dir: &Path) -> PathBuf {
    dir.join("nats.pid")
}

/// Removes the files of a server that has exited, if there are any.
fn remove_run_files(dir: &Path) {
    let _ = fs::remove_file(pid_file(dir));
    let _ = fs::remove_dir_all(dir.join("ports"));
}

/// Waits until the server has written its address and greets clients.
async fn wait_until_ready(ports: &Path) -> String {
    loop {
        if let Some(url) = written_url(ports)
            && greets(&url).await
        {
            return url;
        }
        sleep(POLL_INTERVAL).await;
    }
}

/// Reads the address from the file that the server writes when it listens.
fn written_url(ports: &Path) -> Option<String> {
    let file = fs::read_dir(ports).ok()?.next()?.ok()?;
    let addresses: Value = serde_json::from_slice(&fs::read(file.path()).ok()?).ok()?;
    addresses["nats"][0].as_str().map(str::to_owned)
}

async fn greets(url: &str) -> bool {
    let Some((_, address)) = url.split_once("://") else { return false };
    let Ok(mut stream) = TcpStream::connect(address).await else { return false };
    let mut greeting = [0; 4];
    stream.read_exact(&mut greeting).await.is_ok() && greeting == *b"INFO"
}

fn find(program: Option<&Path>) -> Result<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let dirs = env::split_paths(&path).chain(PACKAGES.map(PathBuf::from));
    let mut found: Box<dyn Iterator<Item = _>> = match program {
        Some(program) => Box::new([program.to_owned()].into_iter()),
        None => Box::new(dirs.map(|dir| dir.join(PROGRAM))),
    };
    found.find(|program| program.is_file()).with_context(|| {
        let at = program.map(|program| format!(" at {}", program.display())).unwrap_or_default();
        format!(
            "{PROGRAM} not found{at}: apt-get install nats-server (Debian, Ubuntu) \
             or brew install nats-server (macOS)"
        )
    })
}
