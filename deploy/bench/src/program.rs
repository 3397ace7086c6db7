//! A child process that serves HTTP.

use std::{
    net::{Ipv4Addr, SocketAddr, TcpListener},
    ops::Range,
    path::Path,
    process::{self, Stdio},
    sync::atomic::{AtomicU32, Ordering},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};
use http::Method;
use rustix::process::{Pid, Signal, kill_process};
use tokio::{
    process::{Child, Command},
    time::{sleep, timeout},
};

use crate::client::{Connection, prepare};

/// Maximum time until a program is ready, and until it has ended after a signal.
const DEADLINE: Duration = Duration::from_mins(1);

/// Ports for the programs. By default, Linux chooses those of outgoing connections from 32768 on.
const PORTS: Range<u16> = 10_000..32_768;

const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// A program and its settings, which it gets with each start.
pub(crate) struct Program {
    /// Name of the program, shared by its replicas.
    pub(crate) name: String,
    command: Command,
    /// Address and path that is answered as soon as the program is ready.
    ready: (SocketAddr, &'static str),
    child: Option<Child>,
}

impl Program {
    /// Prepares a program that gets only these settings, as environment variables.
    pub(crate) fn new(
        name: &str,
        file: &Path,
        arguments: &[String],
        settings: &[(&str, String)],
        ready: (SocketAddr, &'static str),
    ) -> Self {
        let mut command = Command::new(file);
        command
            .args(arguments)
            .env_clear()
            .envs(settings.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .kill_on_drop(true);
        Self { name: name.to_owned(), command, ready, child: None }
    }

    pub(crate) fn start(&mut self) -> Result<()> {
        let started = self.command.spawn();
        let program = || format!("cannot run {}", self.command.as_std().get_program().display());
        self.child = Some(started.with_context(program)?);
        Ok(())
    }

    pub(crate) fn pid(&self) -> Option<u32> {
        self.child.as_ref().and_then(Child::id)
    }

    /// Waits until the program is ready.
    pub(crate) async fn ready(&mut self) -> Result<()> {
        let began = Instant::now();
        let (address, path) = self.ready;
        while !is_ready(address, path).await {
            if let Some(child) = &mut self.child
                && let Some(status) = child.try_wait()?
            {
                bail!("{} has ended: {status}", self.name);
            }
            ensure!(began.elapsed() < DEADLINE, "{} does not become ready", self.name);
            sleep(POLL_INTERVAL).await;
        }
        Ok(())
    }

    /// Sends the signal that ends the program.
    pub(crate) fn terminate(&self) -> Result<()> {
        if let Some(pid) = self.pid().and_then(|pid| Pid::from_raw(pid.cast_signed())) {
            kill_process(pid, Signal::TERM)?;
        }
        Ok(())
    }

    /// Waits until the program has ended.
    pub(crate) async fn ended(&mut self) -> Result<()> {
        if let Some(mut child) = self.child.take() {
            let ended = timeout(DEADLINE, child.wait()).await;
            ended.with_context(|| format!("{} does not end", self.name))??;
        }
        Ok(())
    }
}

/// Returns whether a program answers, other than that it is not ready. The baseline does not have the
/// path.
async fn is_ready(address: SocketAddr, path: &str) -> bool {
    let request = prepare(&Method::GET, path, "", None);
    let Ok(mut connection) = Connection::open(address).await else { return false };
    let response = connection.count(request).await;
    response.is_ok_and(|response| !response.status.is_server_error())
}

/// Returns a local address that is free. No outgoing connection takes it while its program is
/// restarted.
pub(crate) fn free_address() -> Result<SocketAddr> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    for _ in PORTS {
        let count = process::id().wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed));
        let port = PORTS.start + u16::try_from(count % u32::from(PORTS.end - PORTS.start))?;
        if let Ok(listener) = TcpListener::bind((Ipv4Addr::LOCALHOST, port)) {
            return Ok(listener.local_addr()?);
        }
    }
    bail!("no port from {} to {} is free", PORTS.start, PORTS.end)
}
