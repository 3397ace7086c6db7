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
use crate::process::{POLL, Process, Stop, command, rotate};

const PROGRAM: &str = "nats-server";

/// JetStream reads its store before the server answers.
const START_DEADLINE: Duration = Duration::from_mins(1);

/// Where packages put the program although it may not be on the PATH.
const PACKAGES: [&str; 3] = ["/usr/sbin", "/opt/homebrew/bin", "/usr/local/bin"];

/// A running nats-server that only this machine can reach.
#[derive(Debug)]
pub struct Nats {
    process: Process,
    url: String,
    dir: PathBuf,
    _data: DataDir,
}

impl Nats {
    /// Starts the server on a free port, its store in the data directory, and waits until it
    /// answers. The program is looked for unless given.
    pub async fn start(data: &DataDir, program: Option<&Path>) -> Result<Self> {
        Self::run(data, program, |_| {}).await
    }

    /// Starts the server with a configuration file besides, whose variables have these values.
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
        fs::create_dir_all(&ports).with_context(|| format!("cannot make {}", ports.display()))?;

        let log = data.path().join("nats.log");
        rotate(&log);
        let mut command = command(&program, &dir, Stop::Terminate);
        command.args(["--jetstream", "--addr", "127.0.0.1", "--port", "-1"]);
        command.arg("--store_dir").arg(&dir).arg("--ports_file_dir").arg(&ports);
        configure(&mut command);
        let process = Process::spawn(PROGRAM, command, Stop::Terminate, &log).await?;
        fs::write(pid_file(&dir), process.pid().to_string())?;

        let url = tokio::select! {
            url = answer(&ports) => url,
            failure = process.failed() => return Err(failure),
            () = sleep(START_DEADLINE) => bail!("{PROGRAM} is silent; {}", process.last_words()),
        };
        Ok(Self { process, url, dir, _data: data.clone() })
    }

    /// Where clients find the server, such as `nats://127.0.0.1:41234`, or `tls://…` if it is
    /// configured so; another port every time.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Where clients find the server that another process runs in a data directory.
    pub fn url_of_running(data: &Path) -> Result<String> {
        told_url(&data.join("nats/ports"))
            .with_context(|| format!("no {PROGRAM} runs in {}", data.display()))
    }

    /// The id of the server's process.
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// Waits until the server ends without having been told to, and says how.
    pub async fn exited(&self) -> Error {
        self.process.failed().await
    }

    /// Stops the server and waits until it is gone.
    pub async fn stop(self) -> Result<()> {
        self.process.stop().await?;
        forget(&self.dir);
        Ok(())
    }

    /// Stops the server that a killed process left in a directory with a `nats.pid`, if any.
    pub async fn stop_left_behind(dir: &Path) -> Result<()> {
        if let Some(pid) = leftover::read_pid(&pid_file(dir)) {
            leftover::stop(pid, PROGRAM, dir, Stop::Terminate).await?;
        }
        forget(dir);
        Ok(())
    }
}

fn pid_file(dir: &Path) -> PathBuf {
    dir.join("nats.pid")
}

/// Removes what tells of a server that is gone. Usually there is nothing.
fn forget(dir: &Path) {
    let _ = fs::remove_file(pid_file(dir));
    let _ = fs::remove_dir_all(dir.join("ports"));
}

/// Waits until the server has told its address and greets who comes there.
async fn answer(ports: &Path) -> String {
    loop {
        if let Some(url) = told_url(ports)
            && greets(&url).await
        {
            return url;
        }
        sleep(POLL).await;
    }
}

/// Reads the address from the file that the server writes once it listens.
fn told_url(ports: &Path) -> Option<String> {
    let file = fs::read_dir(ports).ok()?.next()?.ok()?;
    let told: Value = serde_json::from_slice(&fs::read(file.path()).ok()?).ok()?;
    told["nats"][0].as_str().map(str::to_owned)
}

async fn greets(url: &str) -> bool {
    let Some((_, address)) = url.split_once("://") else { return false };
    let Ok(mut stream) = TcpStream::connect(address).await else { return false };
    let mut greeting = [0; 4];
    stream.read_exact(&mut greeting).await.is_ok() && greeting == *b"INFO"
}

fn find(program: Option<&Path>) -> Result<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let places = env::split_paths(&path).chain(PACKAGES.map(PathBuf::from));
    let mut found: Box<dyn Iterator<Item = _>> = match program {
        Some(program) => Box::new([program.to_owned()].into_iter()),
        None => Box::new(places.map(|dir| dir.join(PROGRAM))),
    };
    found.find(|program| program.is_file()).with_context(|| {
        let at = program.map(|program| format!(" at {}", program.display())).unwrap_or_default();
        format!(
            "there is no {PROGRAM}{at}: apt-get install nats-server (Debian, Ubuntu) \
             or brew install nats-server (macOS)"
        )
    })
}
