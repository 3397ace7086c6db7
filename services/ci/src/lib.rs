//! Uploads the reports of a CI job to an open execution of Assay.

mod environment;
mod execution;
mod files;
mod options;
mod reports;
mod summary;
mod upload;
mod verdict;

use std::time::Duration;

use anyhow::Context;
use assay_client::{Client, ClientError, visible};
use assay_proto::execution::OpenExecutionInput;
use percent_encoding::{CONTROLS, utf8_percent_encode};
use uuid::Uuid;

pub use self::options::{Action, Config};
use self::{
    environment::{Job, Variables},
    execution::{Execution, complete, open, wait},
    files::find,
    reports::{Report, reports},
    summary::{markdown, publish, text, unmet, verdict_markdown},
    upload::upload,
    verdict::verdict,
};

/// Timeout of a request. Assay may take minutes for a large upload.
const TIMEOUT: Duration = Duration::from_mins(15);

/// Remedy if a client for HTTPS cannot be created.
const NO_CERTIFICATES: &str = "HTTPS needs the certificates of authorities: install \
    ca-certificates, or name a file with certificates in SSL_CERT_FILE";

/// Maximum length of a key, in characters.
const MAX_KEY: usize = 240;

/// Maximum number of executions with the key of one run of the CI system.
const MAX_REPEATS: u32 = 50;

/// The contribution of a job to a test run.
struct Part {
    input: OpenExecutionInput,
    /// Whether the user chose the key.
    key_is_given: bool,
    variant: Option<String>,
}

/// Uploads reports or completes an execution. Returns whether the job may succeed: the execution
/// passed or meets its rules, or nobody waited for it.
pub async fn run(config: Config) -> anyhow::Result<bool> {
    let files = find(&config.files)?;
    if config.action == Action::Upload && files.is_empty() {
        if config.allow_empty {
            tracing::warn!("no file matches {}", config.files.join(" "));
            return Ok(true);
        }
        anyhow::bail!(
            "no file with contents matches {}; check that the tests ran and where they write their \
             reports, or allow it with --allow-empty",
            config.files.join(" ")
        );
    }
    let client = Client::new(&config.account, TIMEOUT).context(NO_CERTIFICATES)?;
    #[expect(clippy::disallowed_methods, reason = "these are not settings of this program")]
    let job = Job::detect(&Variables(&|name| std::env::var(name).ok())).unwrap_or_default();
    let part = Part::new(&config, &job);
    let mut execution = match config.action {
        Action::Upload => {
            let reports = reports(files, !config.no_attachments)?;
            report(&client, &config, part, reports).await?
        }
        Action::Complete => {
            let execution = open(&client, &part.input).await?;
            if execution.has_ended() {
                execution
            } else {
                complete(&client, &execution, None).await?
            }
        }
    };
    if config.wait || config.gate {
        let timeout = Duration::from_mins(config.wait_minutes.into());
        execution = wait(&client, execution, timeout).await?;
    }
    print(text(&execution));
    let verdict = if config.gate { Some(verdict(&client, &execution).await?) } else { None };
    print(verdict.iter().flat_map(unmet));
    if let (true, Some(summary)) = (execution.has_ended(), &job.summary) {
        let markdown = match &verdict {
            Some(verdict) => verdict_markdown(&execution, verdict),
            None => markdown(&execution),
        };
        publish(summary, &execution, &markdown)?;
    }
    Ok(match verdict {
        Some(verdict) => verdict.has_passed(),
        None => !config.wait || execution.has_passed(),
    })
}

/// Prints lines, none of which a CI system takes for a command.
fn print(lines: impl IntoIterator<Item = String>) {
    for line in lines {
        println!("{}", visible(&line));
    }
}

/// Uploads the reports and completes the part of the job. If the execution of this run of the CI
/// system has ended, because a job is repeated, the reports belong to another one.
async fn report(
    client: &Client,
    config: &Config,
    mut part: Part,
    reports: Vec<Report>,
) -> anyhow::Result<Execution> {
    let key = part.input.key.clone().unwrap_or_default();
    for repeat in 2..=MAX_REPEATS {
        let execution = open(client, &part.input).await?;
        if !execution.has_ended() {
            match report_to(client, config, &part, &execution, reports.clone()).await {
                Err(error) if has_ended(&error) && !part.key_is_given => {}
                reported => return reported,
            }
        } else if part.key_is_given {
            anyhow::bail!("the execution with the key {key} has ended; use another key");
        }
        part.input.key = Some(format!("{key}-{repeat}"));
    }
    anyhow::bail!("the run of the CI system has {MAX_REPEATS} executions; choose a --key")
}

async fn report_to(
    client: &Client,
    config: &Config,
    part: &Part,
    execution: &Execution,
    reports: Vec<Report>,
) -> anyhow::Result<Execution> {
    let reporter = part.input.reporter.as_deref();
    let partial = config.partial.then_some("true");
    let variant = part.variant.as_deref();
    let query = [("reporter", reporter), ("variant", variant), ("partial", partial)];
    let query: Vec<_> =
        query.into_iter().filter_map(|(name, value)| Some((name, value?.to_owned()))).collect();
    let new = upload(client, execution, reports, &query).await?;
    tracing::info!("{new} new results");
    if config.keep_open {
        return open(client, &part.input).await;
    }
    complete(client, execution, reporter).await
}

fn has_ended(error: &anyhow::Error) -> bool {
    error.downcast_ref::<ClientError>().is_some_and(|error| error.has_code("execution_ended"))
}

impl Part {
    fn new(config: &Config, job: &Job) -> Self {
        let config = config.clone();
        let (reporter, reporters) = match (config.reporter, &job.shard) {
            (None, Some((index, total))) => {
                (Some(index.clone()), config.reporters.or(Some(*total)))
            }
            (reporter, _) => (reporter, config.reporters),
        };
        let key_is_given = config.key.is_some();
        let input = OpenExecutionInput {
            project: config.project,
            test_set: config.set,
            key: Some(config.key.unwrap_or_else(|| key_of(job))),
            reporter: reporter.filter(|_| config.action == Action::Upload),
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
        Self { input, key_is_given, variant: config.variant }
    }
}

/// Returns the key of the run of the CI system in visible characters, or a new one.
fn key_of(job: &Job) -> String {
    if job.key.is_empty() {
        return Uuid::now_v7().to_string();
    }
    let mut key = utf8_percent_encode(&job.key, CONTROLS).to_string().replace(' ', "_");
    key.truncate(MAX_KEY);
    key
}
