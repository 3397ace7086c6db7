//! Assay's processes, and the memory that each request makes them take.

use std::{fmt::Write as _, fs, process::Stdio, sync::LazyLock};

use assay_testkit::Api;
use reqwest::{Method, StatusCode};

use crate::{
    fleet::Fleet,
    process::{PASSWORD, Program, command, data_dir},
};

/// Memory that the chart allows a program, in bytes. The execution service may take twice as much.
static CHART_LIMIT: LazyLock<u64> = LazyLock::new(|| {
    let values = concat!(env!("CARGO_MANIFEST_DIR"), "/../kubernetes/assay/values.yaml");
    let text = fs::read_to_string(values).unwrap();
    let limits = text.lines().filter_map(|line| line.trim().strip_prefix("limits: {memory: "));
    let of_programs = limits.filter_map(|limit| limit.strip_suffix("Mi}")?.parse::<u64>().ok());
    of_programs.max().unwrap() << 20
});

/// The processes of Assay.
enum Processes {
    Standalone(Box<Program>),
    /// Each program is a process of its own.
    Separate(Box<Fleet>),
}

impl Processes {
    fn ids(&self) -> Vec<(&str, u32)> {
        match self {
            Self::Standalone(program) => vec![("assay", program.child.id().unwrap())],
            Self::Separate(fleet) => {
                fleet.replicas.iter().map(|replica| (replica.program, replica.id())).collect()
            }
        }
    }
}

/// Processes, and what their requests have taken more than they may.
pub(super) struct Measured {
    processes: Processes,
    pub(super) api: Api,
    /// Maximum memory that a request may take, in bytes.
    limit: u64,
    excesses: String,
    /// The requests by the memory that they took, in mebibytes.
    taken: Vec<(u64, String)>,
}

/// Returns a number of bytes that the system shows of a process.
fn status(process: u32, name: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with(name)).unwrap();
    let kibibytes = line.split_whitespace().nth(1).unwrap();
    kibibytes.parse::<u64>().unwrap() << 10
}

impl Measured {
    /// Starts all programs as one process.
    pub(super) async fn standalone(limit: u64) -> Self {
        let mut command = command(&data_dir());
        // Memory is given back at once, so that the next request starts from the same.
        command.env("MIMALLOC_PURGE_DELAY", "0").env("ASSAY_LOG", "error");
        command.stderr(Stdio::inherit());
        let program = Program::start(command).await;
        let api = program.log_in("ada@example.org", PASSWORD).await;
        Self::of(Processes::Standalone(Box::new(program)), api, limit)
    }

    /// Starts each program as a process.
    pub(super) async fn separate(limit: u64) -> Self {
        let fleet = Fleet::start(&[None], &[("MIMALLOC_PURGE_DELAY", "0")]).await;
        let admin = fleet.admins().await.swap_remove(0);
        Self::of(Processes::Separate(Box::new(fleet)), admin, limit)
    }

    fn of(processes: Processes, api: Api, limit: u64) -> Self {
        Self { processes, api, limit, excesses: String::new(), taken: Vec::new() }
    }

    /// Sends a request, and compares the largest resident memory meanwhile with that before.
    pub(super) async fn send(&mut self, name: &str, request: reqwest::RequestBuilder) {
        let processes = self.processes.ids();
        for (_, process) in &processes {
            fs::write(format!("/proc/{process}/clear_refs"), "5").unwrap();
        }
        let before: Vec<u64> = processes.iter().map(|(_, id)| status(*id, "VmRSS:")).collect();
        let answer = request.send().await;
        let code = match answer {
            Ok(answer) => {
                let code = answer.status();
                let body = answer.bytes().await.map(|body| body.len());
                if body.as_ref().is_ok_and(|size| *size > 1 << 20) {
                    writeln!(self.excesses, "{name}: an answer of {body:?} bytes").unwrap();
                }
                code.as_u16()
            }
            // The answer was sent before the body was read.
            Err(error) if error.is_request() => 0,
            Err(error) => panic!("{name}: {error:?}"),
        };
        let overloaded = StatusCode::SERVICE_UNAVAILABLE.as_u16();
        if code >= 500 && code != overloaded {
            writeln!(self.excesses, "{name}: {code}").unwrap();
        }
        for ((program, id), before) in processes.into_iter().zip(before) {
            let most = status(id, "VmHWM:");
            let took = most.saturating_sub(before);
            self.taken.push((took >> 20, format!("{program}: {name}: {code}")));
            if took > self.limit || most > *CHART_LIMIT && program != "assay" {
                let (took, most) = (took >> 20, most >> 20);
                writeln!(self.excesses, "{program}: {name}: {code}, {took} of {most} MiB").unwrap();
            }
        }
    }

    pub(super) async fn send_json(
        &mut self,
        name: &str,
        method: &Method,
        path: &str,
        body: String,
    ) {
        let request = self.api.request(method.clone(), path);
        self.send(name, request.header("content-type", "application/json").body(body)).await;
    }

    /// Ends the processes. Fails if a request took too much.
    pub(super) async fn end(mut self) {
        self.taken.sort_unstable_by_key(|(took, _)| std::cmp::Reverse(*took));
        for (took, name) in self.taken.iter().take(20) {
            println!("{took} MiB {name}");
        }
        let sent = self.taken.len() / self.processes.ids().len();
        println!("{sent} requests");
        assert!(self.excesses.is_empty(), "\n{}", self.excesses);
        match self.processes {
            Processes::Standalone(program) => assert!(program.terminate().await.success()),
            Processes::Separate(fleet) => {
                assert_eq!(fleet.errors(), Vec::<String>::new());
                fleet.stop().await.stop().await;
            }
        }
    }
}
