//! The contribution of a job to a test run.

use assay_proto::execution::OpenExecutionInput;
use uuid::Uuid;

use crate::{Action, Config, environment::Job, execution::Execution};

/// Remedy if several jobs have one key, and the first of them ends the execution.
const SEVERAL_JOBS: &str = "If several jobs run parts of the tests, as those of a matrix or of a reusable workflow \
    that is called twice do, give each of them a name in ASSAY_REPORTER, and their number in \
    ASSAY_REPORTERS. On GitHub Actions, these are ${{ strategy.job-index }} and ${{ strategy.job-total }}. \
    If their number is not known, all use --keep-open or --whole-run, and a last job runs `assay-ci \
    complete`. Jobs with other tests use a --key of their own";

/// Remedy if the jobs of a run have nothing in common.
const NO_RUN: &str = "--whole-run: the CI system does not name the run that this job is a part of; set ASSAY_KEY to \
    a text that is the same in all of its jobs and different in each run";

/// The contribution of a job to a test run.
pub(crate) struct Part {
    pub(crate) input: OpenExecutionInput,
    pub(crate) variant: Option<String>,
    /// Whether the user chose the key.
    key_is_given: bool,
    may_repeat: bool,
    keeps_open: bool,
}

impl Part {
    /// Returns the part of a job. Fails if the options leave open when the execution ends, although the
    /// job is one of several.
    pub(crate) fn new(config: &Config, job: &Job) -> anyhow::Result<Self> {
        let config = config.clone();
        let is_upload = config.action == Action::Upload;
        let has_key = config.key.is_some() || job.key_of_run.is_some();
        anyhow::ensure!(!config.whole_run || has_key, NO_RUN);
        if is_upload && !config.keep_open && !config.whole_run {
            check(&config, job)?;
        }
        let shard = job.shard.as_ref();
        let reporter = config.reporter.or_else(|| Some(shard?.name.clone()));
        let reporters = config.reporters.or_else(|| shard?.total);
        // In the whole run, other jobs have shards of their own.
        let (reporter, reporters) = if config.whole_run {
            (Some(in_run(job, reporter)), config.reporters)
        } else {
            (reporter, reporters)
        };
        let key_is_given = config.key.is_some();
        let of_system = if config.whole_run { &job.key_of_run } else { &job.key };
        let key = config.key.or_else(|| of_system.clone());
        let input = OpenExecutionInput {
            project: config.project,
            test_set: config.set.unwrap_or_default(),
            key: Some(key.unwrap_or_else(|| Uuid::now_v7().to_string())),
            reporter: reporter.filter(|_| is_upload),
            reporters,
            grace_in_sec: config.grace_seconds,
            subject_id: config.subject_id,
            environment_id: config.environment_id,
            tags: config.tags,
            branch: config.branch.or_else(|| job.branch.clone()),
            commit: config.commit.or_else(|| job.commit.clone()),
            build: config.build.or_else(|| job.build.clone()),
            ci_url: config.ci_url.or_else(|| job.url.clone()),
            ..OpenExecutionInput::default()
        };
        Ok(Self {
            input,
            variant: config.variant,
            key_is_given,
            may_repeat: job.may_repeat && !config.whole_run,
            keeps_open: config.keep_open,
        })
    }

    pub(crate) fn key(&self) -> &str {
        self.input.key.as_deref().unwrap_or_default()
    }

    /// Warns if the execution has results already, and this job would end it for the others.
    pub(crate) fn warn_of_others(&self, execution: &Execution) {
        if execution.statistic.total > 0 && self.input.reporter.is_none() && !self.keeps_open {
            let key = self.key();
            tracing::warn!(
                "another job has reported to the execution with the key {key}, and neither has a name: the \
                 first one that is done ends it. {SEVERAL_JOBS}"
            );
        }
    }

    /// Warns if there is nothing to complete.
    pub(crate) fn warn_of_nothing(&self, execution: &Execution) {
        if execution.statistic.total == 0 {
            tracing::warn!(
                "no job has reported results to the execution with the key {}. If only this job is repeated, \
                 repeat those with tests as well",
                self.key()
            );
        }
    }

    /// Continues with the next execution of the run, since the one with the current key has ended. Fails
    /// unless this job may be a repetition of the one that ended it.
    pub(crate) fn repeat(&mut self, key: &str, repeat: u32) -> anyhow::Result<()> {
        let ended = self.key();
        if self.key_is_given {
            anyhow::bail!(
                "the execution with the key {ended} has ended; use another key. {SEVERAL_JOBS}"
            );
        }
        if !self.may_repeat {
            anyhow::bail!(
                "the execution with the key {ended} has ended: another job, or another step of this one, has \
                 completed it. {SEVERAL_JOBS}"
            );
        }
        let next = format!("{key}-{repeat}");
        tracing::warn!(
            "the execution with the key {ended} has ended; the results of this repeated job belong to a new \
             one with the key {next}. {SEVERAL_JOBS}"
        );
        self.input.key = Some(next);
        Ok(())
    }
}

/// Returns the name of a reporter among those of all jobs of a run.
fn in_run(job: &Job, reporter: Option<String>) -> String {
    let parts: Vec<_> = [job.name.clone(), reporter].into_iter().flatten().collect();
    if parts.is_empty() { "job".to_owned() } else { parts.join(" ") }
}

/// Checks that the execution can end when the jobs that report to it are done.
fn check(config: &Config, job: &Job) -> anyhow::Result<()> {
    if let Some(shard) = &job.shard {
        anyhow::ensure!(
            config.key.is_some() || job.key.is_some(),
            "this job is one of several, {}, and the CI system has no name for all of them: set ASSAY_KEY to a \
             text that is the same in all of them and different in each run",
            shard.name
        );
        anyhow::ensure!(
            config.reporters.is_some() || shard.total.is_some(),
            "this job is one of several, {}, and the CI system does not name their number: set ASSAY_REPORTERS \
             to it, or use --keep-open in all of them and run `assay-ci complete` in a last job",
            shard.name
        );
    }
    let reporter = config.reporter.as_ref().or(job.shard.as_ref().map(|shard| &shard.name));
    match (reporter, config.reporters) {
        (None, Some(2..)) => anyhow::bail!(
            "--reporters is more than 1, and this job has no name: set ASSAY_REPORTER to a name that no \
             other job has, such as the number of the shard"
        ),
        (Some(name), None) if job.shard.is_none() => tracing::warn!(
            "the execution stays open until its grace period ends, since the number of jobs like {name} is \
             not known: set ASSAY_REPORTERS, or run `assay-ci complete` in a last job"
        ),
        _ => {}
    }
    Ok(())
}
