//! The command that runs an instance of a test: its input, its process and its end.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    future::Future,
    io,
    process::{ExitStatus, Stdio},
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant, SystemTime},
};

use anyhow::{Context, Result};
use assay_proto::{
    Timestamp, Variable,
    execution::{InstanceResultInput, Lease},
};
use chrono::{DateTime, SubsecRound};
use rustix::process::{Pid, Signal, kill_process_group};
use tempfile::TempDir;
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWriteExt},
    process::Child,
    time::timeout,
};

use crate::{
    files::{self, Files},
    outcome::{self, Finished},
};

/// Time between SIGTERM and SIGKILL.
pub(crate) const GRACE: Duration = Duration::from_secs(5);

/// Variables that affect what a shell runs before the command, and how it reads the command.
const OF_SHELLS: [&str; 6] = ["PATH", "BASH_ENV", "BASHOPTS", "SHELLOPTS", "IFS", "PS4"];

/// Number of bytes kept of the end of the output.
pub(crate) const MAX_OUTPUT: usize = 16 << 10;

/// A command that runs one instance.
pub(crate) struct Command<'a> {
    words: &'a [OsString],
    lease: &'a Lease,
    files: &'a Files,
    instance_nr: i32,
}

impl<'a> Command<'a> {
    pub(crate) fn new(
        words: &'a [OsString],
        lease: &'a Lease,
        files: &'a Files,
        instance_nr: i32,
    ) -> Self {
        Self { words, lease, files, instance_nr }
    }

    /// Runs the command and returns its result, or `None` if it was interrupted. Stops it after
    /// `longest`. Calls `write` with its output as it arrives.
    pub(crate) async fn run(
        self,
        longest: Duration,
        write: impl Fn(&[u8]),
        interrupted: impl Future<Output = ()>,
    ) -> Result<Option<InstanceResultInput>> {
        let files = TempDir::with_prefix("assay-")?;
        let start = now();
        let begun = Instant::now();
        let mut child = self.spawn(&files)?;
        let group = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
        let lease = serde_json::to_vec(self.lease)?;
        let ended = tokio::select! {
            ended = ended(&mut child, group, &lease, longest, write) => Some(ended),
            () = interrupted => None,
        };
        let Some(Ended { status, output, timed_out }) = ended else {
            stop(&mut child, group).await;
            return Ok(None);
        };
        let status = status.context("cannot wait for the command")?;
        let finished = Finished {
            command: self.line(),
            status,
            output,
            timed_out,
            seconds: begun.elapsed().as_secs_f64(),
        };
        let instance = outcome::read(files.path(), &finished)?;
        Ok(Some(InstanceResultInput {
            instance_nr: Some(self.instance_nr),
            start_date_time: instance.start_date_time.or(Some(start)),
            ..instance
        }))
    }

    fn spawn(&self, files: &TempDir) -> Result<Child> {
        let (program, arguments) = self.words.split_first().context("the command is empty")?;
        let mut command = tokio::process::Command::new(program);
        command
            .args(arguments)
            .envs(self.environment())
            .env("ASSAY_RESULT_FILE", files.path().join(outcome::RESULT_FILE))
            .env("ASSAY_JUNIT_FILE", files.path().join(outcome::JUNIT_FILE))
            // The command must not see the token of the engine.
            .env_remove("ASSAY_TOKEN")
            .env_remove("ASSAY_TOKEN_FILE")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true);
        command.spawn().with_context(|| format!("cannot run {}", program.display()))
    }

    /// Returns the command line, as text for people.
    fn line(&self) -> String {
        let words: Vec<_> = self.words.iter().map(|word| word.to_string_lossy()).collect();
        words.join(" ")
    }

    /// Returns the variables of the subject and of the plan, which win, and the properties of the test.
    fn environment(&self) -> BTreeMap<String, String> {
        let mut environment = BTreeMap::new();
        let subject = self.lease.subject.as_ref();
        let plan = self.lease.test_plan.as_ref();
        let subjects = subject.iter().flat_map(|subject| &subject.variables);
        let plans = plan.iter().flat_map(|plan| &plan.variables);
        for Variable { name, content, .. } in subjects.chain(plans) {
            if may_be_set(name) && !content.contains('\0') {
                environment.insert(name.clone(), content.clone());
            } else {
                tracing::warn!(
                    "variable {name:?} is not passed to the command: its name is reserved or not valid, \
                     or its content has NUL"
                );
            }
        }
        let mut set = |name: &str, value: Option<&str>| {
            // No program can get a value with NUL.
            let value = value.unwrap_or_default().replace('\0', "\u{fffd}");
            environment.insert(format!("ASSAY_{name}"), value);
        };
        let case = self.lease.test_case.as_ref();
        set("TEST_CASE", case.map(|case| case.identifier.as_str()));
        set("TEST_NAME", case.map(|case| case.name.as_str()));
        set("INSTANCE_NR", Some(&self.instance_nr.to_string()));
        set("EXECUTION_ID", Some(&self.lease.execution_id));
        set("REPORT_ID", Some(&self.lease.test_report_id));
        set("SUBJECT", subject.map(|subject| subject.identifier.as_str()));
        set("SUBJECT_URI", subject.map(|subject| subject.uri.as_str()));
        let lab = self.lease.environment.as_ref();
        set("ENVIRONMENT", lab.map(|lab| lab.name.as_str()));
        set("USERNAME", lab.map(|lab| lab.username.as_str()));
        set("PASSWORD", lab.map(|lab| lab.password.as_str()));
        for variable in files::VARIABLES {
            set(variable, self.files.path(variable));
        }
        environment
    }
}

/// Returns whether a command may get a variable: its name is valid in shells, and it does not affect
/// which programs and libraries are loaded.
fn may_be_set(name: &str) -> bool {
    let mut letters = name.chars();
    let starts_well = letters.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
    let continues_well = letters.all(|c| c.is_ascii_alphanumeric() || c == '_');
    let reserved = ["ASSAY_", "LD_", "DYLD_"].iter().any(|prefix| name.starts_with(prefix));
    starts_well && continues_well && !reserved && !OF_SHELLS.contains(&name)
}

/// The end of a command.
struct Ended {
    status: io::Result<ExitStatus>,
    /// End of its output.
    output: String,
    timed_out: bool,
}

/// Passes the lease to a command and waits for its end, with which its background processes end.
/// Stops it after `longest`.
async fn ended(
    child: &mut Child,
    group: Option<Pid>,
    lease: &[u8],
    longest: Duration,
    output_arrives: impl Fn(&[u8]),
) -> Ended {
    let (input, output, errors) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let write = async {
        if let Some(mut input) = input {
            // Writing fails if the command closes its input, which it may.
            let _ = input.write_all(lease).await;
        }
    };
    let (mut kept, mut kept_errors) = (Vec::new(), Vec::new());
    let seen = &output_arrives;
    let are_open = AtomicBool::new(true);
    let (status, timed_out) = {
        let streams = async {
            tokio::join!(
                write,
                tail(output, &mut kept, seen),
                tail(errors, &mut kept_errors, seen)
            );
            are_open.store(false, Ordering::Relaxed);
        };
        let mut streams = std::pin::pin!(streams);
        let end = async {
            tokio::select! {
                status = child.wait() => status,
                () = &mut streams => child.wait().await,
            }
        };
        let (status, timed_out) = if let Ok(status) = timeout(longest, end).await {
            (status, false)
        } else {
            stop(child, group).await;
            (child.wait().await, true)
        };
        signal(group, Signal::KILL);
        if are_open.load(Ordering::Relaxed) {
            // A process that has left the group may keep the output open.
            let _ = timeout(GRACE, streams).await;
        }
        (status, timed_out)
    };
    let output = format!("{}{}", text(&kept), text(&kept_errors));
    Ended { status, output, timed_out }
}

/// Stops the process group of a command.
async fn stop(child: &mut Child, group: Option<Pid>) {
    signal(group, Signal::TERM);
    let _ = timeout(GRACE, child.wait()).await;
    signal(group, Signal::KILL);
    let _ = child.wait().await;
}

fn signal(group: Option<Pid>, signal: Signal) {
    if let Some(group) = group {
        // This fails if all processes of the group have ended.
        let _ = kill_process_group(group, signal);
    }
}

/// Reads a stream and keeps its end.
async fn tail(stream: Option<impl AsyncRead + Unpin>, kept: &mut Vec<u8>, seen: impl Fn(&[u8])) {
    let Some(mut stream) = stream else { return };
    let mut buffer = [0; 4096];
    while let Ok(read @ 1..) = stream.read(&mut buffer).await {
        seen(&buffer[..read]);
        kept.extend_from_slice(&buffer[..read]);
        if kept.len() > 2 * MAX_OUTPUT {
            kept.drain(..kept.len() - MAX_OUTPUT);
        }
    }
}

/// Returns the end of an output as text. Bytes that are not text take three bytes each, but no more room.
fn text(kept: &[u8]) -> String {
    let from = kept.len().saturating_sub(MAX_OUTPUT);
    let text = String::from_utf8_lossy(&kept[from..]).replace('\0', "\u{fffd}");
    text[text.ceil_char_boundary(text.len().saturating_sub(MAX_OUTPUT))..].to_owned()
}

/// Returns the current time, to the microsecond. Durations use a monotonic clock instead.
fn now() -> Timestamp {
    Timestamp(DateTime::from(SystemTime::now()).trunc_subsecs(6))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_that_affect_loaded_programs_are_rejected() {
        for (name, allowed) in [
            ("TOKEN", true),
            ("_x9", true),
            ("9x", false),
            ("", false),
            ("A-B", false),
            ("A=B", false),
            ("PATH", false),
            ("LD_PRELOAD", false),
            ("BASH_ENV", false),
            ("ASSAY_TEST_CASE", false),
        ] {
            assert_eq!(may_be_set(name), allowed, "{name}");
        }
    }

    #[tokio::test]
    async fn only_the_end_of_long_output_is_kept() {
        let long = vec![b'x'; 10 * MAX_OUTPUT];
        let output = [long.as_slice(), b"end"].concat();
        let mut kept = Vec::new();
        tail(Some(output.as_slice()), &mut kept, |_| {}).await;
        let kept = text(&kept);
        assert!(kept.len() == MAX_OUTPUT && kept.ends_with("end"));
        let binary = text(&[0_u8, 0xff].repeat(MAX_OUTPUT));
        assert!(binary.len() <= MAX_OUTPUT && binary.ends_with('\u{fffd}'));
    }
}
