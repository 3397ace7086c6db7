//! `with-servers COMMAND ARGS…` runs a command with a private PostgreSQL, and removes everything
//! afterwards.
//!
//! `ASSAY_TEST_DATABASE_URL` is the URL of the server's maintenance database, and `ASSAY_TEST_DIR`
//! a directory for files of tests. The database of a test is dropped soon after the process of the
//! test has ended. The exit code is that of the command.

use std::convert::Infallible;
use std::env;
use std::fs::{self, Permissions};
use std::future;
use std::io::{self, IsTerminal};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{ExitCode, ExitStatus};
use std::time::Duration;

use anyhow::{Context, Result};
use assay_servers::{DataDir, Durability, Nats, Postgres, PostgresOptions};
use assay_testkit::{drop_unused, recorded};
use rustix::fs::statvfs;
use rustix::process::{Pid, Signal, kill_process};
use sqlx::postgres::PgConnectOptions;
use tempfile::TempDir;
use tokio::process::{Child, Command};
use tokio::signal::unix::{self, SignalKind};
use tokio::time::timeout;

/// Maximum time until the command has ended after a signal.
const STOP_DEADLINE: Duration = Duration::from_secs(30);

/// Minimum free memory, in bytes, for files of PostgreSQL in memory. They take about 1 GiB.
const LEAST_MEMORY: u64 = 4 << 30;

#[tokio::main]
async fn main() -> ExitCode {
    with_servers().await.unwrap_or_else(|error| {
        eprintln!("with-servers: {error:#}");
        ExitCode::FAILURE
    })
}

async fn with_servers() -> Result<ExitCode> {
    let mut words = env::args_os().skip(1);
    let mut command = Command::new(words.next().context("usage: with-servers COMMAND ARGS…")?);
    command.args(words);
    // From here on, a signal does not end this process before everything is removed.
    let mut signals = Signals::caught()?;

    let dir = directory(&env::temp_dir())?;
    let data = DataDir::lock(dir.path())?;
    let postgres_dir = directory(&postgres_parent())?;
    let postgres_data = DataDir::lock(postgres_dir.path())?;
    let options = PostgresOptions { durability: Durability::None, ..PostgresOptions::default() };
    let postgres = Postgres::start(&postgres_data, &options).await?;

    command.env("ASSAY_TEST_DATABASE_URL", postgres.url("postgres"));
    command.env("ASSAY_TEST_DIR", data.path());
    let status = tokio::select! {
        status = run(command, &mut signals) => status,
        never = drop_databases(postgres.options("postgres")) => match never {},
    };

    postgres.stop().await?;
    fs::remove_dir_all(postgres_dir.path().join("postgres").canonicalize()?)?;
    postgres_dir.close()?;
    stop_nats_servers(data.path()).await?;
    let failures = recorded(data.path())?;
    dir.close()?;
    for failure in &failures {
        eprintln!("with-servers: the code under test failed unexpectedly in {failure}");
    }
    let code = exit_code(status?);
    Ok(if failures.is_empty() { code } else { ExitCode::FAILURE })
}

/// Creates a directory that PostgreSQL can reach, which may run under another account.
fn directory(parent: &Path) -> io::Result<TempDir> {
    tempfile::Builder::new()
        .prefix("assay-test-")
        .permissions(Permissions::from_mode(0o755))
        .tempdir_in(parent)
}

/// Returns the directory for PostgreSQL's files: in memory if there is plenty, as each test
/// creates and removes a thousand of them.
fn postgres_parent() -> PathBuf {
    let is_large = |path: &Path| {
        statvfs(path).is_ok_and(|files| files.f_bavail * files.f_frsize >= LEAST_MEMORY)
    };
    let memory = Path::new("/dev/shm");
    if is_large(memory) { memory.to_owned() } else { env::temp_dir() }
}

/// Drops unused databases until cancelled.
async fn drop_databases(server: PgConnectOptions) -> Infallible {
    if let Err(error) = drop_unused(&server).await {
        eprintln!("with-servers: cannot drop databases of tests: {error:#}");
    }
    future::pending().await
}

/// Runs the command until it ends or this process is signalled.
async fn run(mut command: Command, signals: &mut Signals) -> Result<ExitStatus> {
    let program = command.as_std().get_program().to_owned();
    let mut child = command.spawn().with_context(|| format!("cannot run {}", program.display()))?;
    loop {
        tokio::select! {
            status = child.wait() => return Ok(status?),
            signal = signals.next() => {
                // A terminal sends Ctrl-C to the command too, which may ignore it as shells do.
                if signal != Signal::INT || !io::stdin().is_terminal() {
                    return stop(child, signal).await;
                }
            }
        }
    }
}

/// Forwards a signal and waits until the command has ended. Kills it after the deadline.
async fn stop(mut child: Child, signal: Signal) -> Result<ExitStatus> {
    if let Some(pid) = child.id().and_then(|pid| Pid::from_raw(pid.cast_signed())) {
        kill_process(pid, signal)?;
    }
    if timeout(STOP_DEADLINE, child.wait()).await.is_err() {
        child.kill().await?;
    }
    Ok(child.wait().await?)
}

/// Stops NATS servers that tests left running.
async fn stop_nats_servers(dir: &Path) -> Result<()> {
    let mut dirs = vec![dir.to_owned()];
    while let Some(dir) = dirs.pop() {
        if dir.join("nats.pid").exists() {
            Nats::stop_left_behind(&dir).await?;
        }
        for entry in fs::read_dir(&dir)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                dirs.push(entry.path());
            }
        }
    }
    Ok(())
}

/// Returns the exit code in the convention of shells.
fn exit_code(status: ExitStatus) -> ExitCode {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).map_or(ExitCode::FAILURE, ExitCode::from)
}

/// The signals that end this process.
struct Signals {
    interrupt: unix::Signal,
    terminate: unix::Signal,
    hang_up: unix::Signal,
}

impl Signals {
    fn caught() -> io::Result<Self> {
        Ok(Self {
            interrupt: unix::signal(SignalKind::interrupt())?,
            terminate: unix::signal(SignalKind::terminate())?,
            hang_up: unix::signal(SignalKind::hangup())?,
        })
    }

    async fn next(&mut self) -> Signal {
        tokio::select! {
            _ = self.interrupt.recv() => Signal::INT,
            _ = self.terminate.recv() => Signal::TERM,
            _ = self.hang_up.recv() => Signal::HUP,
        }
    }
}
