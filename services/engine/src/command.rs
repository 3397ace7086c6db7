//! The command that runs a test: what it is told, and how it ends.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    future::Future,
    process::{ExitStatus, Stdio},
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

use crate::outcome::{self, Ended};

/// How long a command may take to end that was told to.
const GRACE: Duration = Duration::from_secs(5);

/// How much is kept of the end of what a command says, in bytes.
const OUTPUT: usize = 16 << 10;

/// What the command is told in its environment.
type Environment = BTreeMap<String, String>;

/// A command for one instance.
pub(crate) struct Command<'a> {
    words: &'a [OsString],
    lease: &'a Lease,
    instance_nr: i32,
}

impl<'a> Command<'a> {
    pub(crate) fn new(words: &'a [OsString], lease: &'a Lease, instance_nr: i32) -> Self {
        Self { words, lease, instance_nr }
    }

    /// Runs it to its end; nothing comes of it if it is interrupted.
    pub(crate) async fn run(
        self,
        interrupted: impl Future<Output = ()>,
    ) -> Result<Option<InstanceResultInput>> {
        let files = TempDir::with_prefix("assay-")?;
        let start = now();
        let begun = Instant::now();
        let mut child = self.spawn(&files)?;
        let group = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
        let (input, output, errors) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let lease = serde_json::to_vec(self.lease)?;
        let told = async {
            if let Some(mut input) = input {
                // A command that does not want to know closes it.
                let _ = input.write_all(&lease).await;
            }
        };
        let ended = async {
            let ((), output, errors, status) =
                tokio::join!(told, tail(output), tail(errors), child.wait());
            (status, format!("{output}{errors}"))
        };
        let ended = tokio::select! {
            ended = ended => Some(ended),
            () = interrupted => None,
        };
        let Some((status, output)) = ended else {
            stop(&mut child, group).await;
            return Ok(None);
        };
        // What it left behind in the background does not outlive it.
        signal(group, Signal::KILL);
        let status: ExitStatus = status.context("the command cannot be waited for")?;
        let ended =
            Ended { command: self.line(), status, output, seconds: begun.elapsed().as_secs_f64() };
        let instance = outcome::read(files.path(), &ended).await?;
        Ok(Some(InstanceResultInput {
            instance_nr: Some(self.instance_nr),
            start_date_time: instance.start_date_time.or(Some(start)),
            ..instance
        }))
    }

    fn spawn(&self, files: &TempDir) -> Result<Child> {
        let (program, arguments) = self.words.split_first().context("there is no command")?;
        let mut command = tokio::process::Command::new(program);
        command
            .args(arguments)
            .envs(self.environment())
            .env("ASSAY_RESULT_FILE", files.path().join(outcome::RESULT_FILE))
            .env("ASSAY_JUNIT_FILE", files.path().join(outcome::JUNIT_FILE))
            // The engine's own secret is none of its business.
            .env_remove("ASSAY_TOKEN")
            .env_remove("ASSAY_TOKEN_FILE")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true);
        command.spawn().with_context(|| format!("cannot run {}", program.display()))
    }

    fn line(&self) -> String {
        let words: Vec<_> = self.words.iter().map(|word| word.to_string_lossy()).collect();
        words.join(" ")
    }

    /// The variables, those of the plan before those of the subject, and what the test is.
    fn environment(&self) -> Environment {
        let mut environment = Environment::new();
        let subject = self.lease.subject.as_ref();
        let plan = self.lease.test_plan.as_ref();
        let subjects = subject.iter().flat_map(|subject| &subject.variables);
        let plans = plan.iter().flat_map(|plan| &plan.variables);
        for Variable { name, content, .. } in subjects.chain(plans) {
            if may_be_set(name) && !content.contains('\0') {
                environment.insert(name.clone(), content.clone());
            } else {
                tracing::warn!("the variable {name:?} cannot be in the environment of a command");
            }
        }
        let mut tell = |name: &str, value: Option<&str>| {
            environment.insert(format!("ASSAY_{name}"), value.unwrap_or_default().to_owned());
        };
        let case = self.lease.test_case.as_ref();
        tell("TEST_CASE", case.map(|case| case.identifier.as_str()));
        tell("TEST_NAME", case.map(|case| case.name.as_str()));
        tell("INSTANCE_NR", Some(&self.instance_nr.to_string()));
        tell("EXECUTION_ID", Some(&self.lease.execution_id));
        tell("REPORT_ID", Some(&self.lease.test_report_id));
        tell("SUBJECT", subject.map(|subject| subject.identifier.as_str()));
        tell("SUBJECT_URI", subject.map(|subject| subject.uri.as_str()));
        let environment_of = self.lease.environment.as_ref();
        tell("ENVIRONMENT", environment_of.map(|of| of.name.as_str()));
        tell("USERNAME", environment_of.map(|of| of.username.as_str()));
        tell("PASSWORD", environment_of.map(|of| of.password.as_str()));
        environment
    }
}

/// Whether a variable may be set for a command: it has a name that shells know, and does not change
/// which programs are run.
fn may_be_set(name: &str) -> bool {
    let mut letters = name.chars();
    let begins = letters.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
    let goes_on = letters.all(|c| c.is_ascii_alphanumeric() || c == '_');
    let reserved = ["ASSAY_", "LD_", "DYLD_"].iter().any(|prefix| name.starts_with(prefix));
    begins && goes_on && !reserved && name != "PATH"
}

/// Ends a command and all that it has started.
async fn stop(child: &mut Child, group: Option<Pid>) {
    signal(group, Signal::TERM);
    let _ = timeout(GRACE, child.wait()).await;
    signal(group, Signal::KILL);
    let _ = child.wait().await;
}

fn signal(group: Option<Pid>, signal: Signal) {
    if let Some(group) = group {
        // It fails where nothing is left.
        let _ = kill_process_group(group, signal);
    }
}

/// The end of what is said, as text.
async fn tail(said: Option<impl AsyncRead + Unpin>) -> String {
    let Some(mut said) = said else { return String::new() };
    let (mut kept, mut piece) = (Vec::new(), [0; 4096]);
    while let Ok(read @ 1..) = said.read(&mut piece).await {
        kept.extend_from_slice(&piece[..read]);
        if kept.len() > 2 * OUTPUT {
            kept.drain(..kept.len() - OUTPUT);
        }
    }
    let from = kept.len().saturating_sub(OUTPUT);
    String::from_utf8_lossy(&kept[from..]).replace('\0', "\u{fffd}")
}

/// The time here, to the microsecond. Durations are measured otherwise.
fn now() -> Timestamp {
    Timestamp(DateTime::from(SystemTime::now()).trunc_subsecs(6))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_do_not_change_which_programs_are_run() {
        for (name, fits) in [
            ("TOKEN", true),
            ("_x9", true),
            ("9x", false),
            ("", false),
            ("A-B", false),
            ("A=B", false),
            ("PATH", false),
            ("LD_PRELOAD", false),
            ("ASSAY_TEST_CASE", false),
        ] {
            assert_eq!(may_be_set(name), fits, "{name}");
        }
    }

    #[tokio::test]
    async fn only_the_end_of_much_is_kept() {
        let much = vec![b'x'; 10 * OUTPUT];
        let said = [much.as_slice(), b"end"].concat();
        let kept = tail(Some(said.as_slice())).await;
        assert!(kept.len() == OUTPUT && kept.ends_with("end"));
    }
}
