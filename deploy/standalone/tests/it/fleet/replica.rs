//! A program as a process, which can be killed, frozen and restarted.

use std::{
    fs::{self, File},
    net::SocketAddr,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use assay_testkit::{Api, Signal, signal};
use reqwest::Method;
use tokio::{
    process::{Child, Command},
    time::timeout,
};

use super::{Clock, free_address, programs};

/// Maximum time in which a program stops gracefully: longer than it waits for its requests.
const STOP_DEADLINE: Duration = Duration::from_secs(35);

/// The directories in which Debian installs `libfaketime`.
const CLOCKS: &str = "/usr/lib/*/faketime/libfaketimeMT.so.1";

/// A replica of a program.
pub(crate) struct Replica {
    /// The name of the program without `assay-`.
    pub(crate) program: &'static str,
    name: String,
    settings: Vec<(String, String)>,
    clock: Clock,
    admin: SocketAddr,
    log: PathBuf,
    process: Option<Child>,
}

impl Replica {
    /// Describes a replica without starting it.
    pub(super) fn new(
        program: &'static str,
        number: usize,
        mut settings: Vec<(String, String)>,
        clock: Clock,
        dir: &Path,
    ) -> Self {
        let admin = free_address();
        settings.push(("ASSAY_ADMIN_LISTEN".to_owned(), admin.to_string()));
        let name = format!("{program} {number}");
        let log = dir.join(format!("{program}-{number}.log"));
        Self { program, name, settings, clock, admin, log, process: None }
    }

    /// The name of the program and the number of its stack.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Starts the process, and does not wait until it is ready.
    pub(crate) fn start(&mut self) {
        let log = File::options().create(true).append(true).open(&self.log).unwrap();
        let path = programs().join(format!("assay-{}", self.program));
        let mut command = Command::new(&path);
        command
            .envs(self.settings.iter().cloned())
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .kill_on_drop(true);
        if let Some(difference) = self.clock {
            command.envs(faked(difference));
        }
        let started = command.spawn();
        self.process = Some(started.unwrap_or_else(|error| panic!("{}: {error}", path.display())));
    }

    pub(crate) async fn is_ready(&self) -> bool {
        let asked = Api::new(format!("http://{}", self.admin)).request(Method::GET, "/readyz");
        asked.send().await.is_ok_and(|answer| answer.status() == 200)
    }

    /// The id of the process.
    pub(crate) fn id(&self) -> u32 {
        self.process.as_ref().and_then(Child::id).unwrap()
    }

    /// Kills the process.
    pub(crate) async fn kill(&mut self) {
        self.process.take().unwrap().kill().await.unwrap();
    }

    /// Keeps the process from running until it is thawed.
    pub(crate) fn freeze(&self) {
        self.send(Signal::STOP);
    }

    pub(crate) fn thaw(&self) {
        self.send(Signal::CONT);
    }

    /// Stops the process gracefully, which has to succeed in time.
    pub(crate) async fn terminate(&mut self) {
        self.send(Signal::TERM);
        let mut process = self.process.take().unwrap();
        let ended = timeout(STOP_DEADLINE, process.wait()).await;
        let ended = ended.unwrap_or_else(|_| panic!("{} does not stop: {}", self.name, self.log()));
        assert!(ended.unwrap().success(), "{}: {}", self.name, self.log());
    }

    /// The lines that Assay has logged as errors, and panics. Libraries log lost connections as errors.
    pub(crate) fn errors(&self) -> Vec<String> {
        let log = self.log();
        let is_own = |line: &str| line.contains(r#""target":"assay"#);
        let is_error = |line: &&str| {
            line.contains("panicked") || line.contains(r#""level":"ERROR""#) && is_own(line)
        };
        log.lines().filter(is_error).map(|line| format!("{}: {line}", self.name)).collect()
    }

    fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    fn send(&self, what: Signal) {
        signal(self.id(), what);
    }
}

/// Variables by which the clock of a process differs from that of the machine. Durations are right.
fn faked(difference: &'static str) -> [(&'static str, String); 4] {
    let library = glob::glob(CLOCKS).unwrap().flatten().next();
    let library = library.expect("no libfaketime: run deploy/local/install test");
    [
        ("LD_PRELOAD", library.display().to_string()),
        ("FAKETIME", difference.to_owned()),
        ("FAKETIME_DONT_FAKE_MONOTONIC", "1".to_owned()),
        ("NO_FAKE_STAT", "1".to_owned()),
    ]
}
