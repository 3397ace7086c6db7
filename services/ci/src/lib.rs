//! Uploads the reports of a CI job to an open execution of Assay.

mod contents;
mod environment;
mod execution;
mod files;
mod host;
mod options;
mod part;
mod reports;
mod requests;
mod skipped;
mod summary;
mod upload;
mod verdict;

use std::time::Duration;

use anyhow::Context;
use assay_client::{Client, ClientError, visible};

pub use self::options::{Action, Config, Format};
use self::{
    environment::{Job, Variables},
    execution::{Execution, complete, open, wait},
    files::find,
    host::Feedback,
    part::Part,
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

/// Maximum number of executions with the key of one run of the CI system.
const MAX_REPEATS: u32 = 50;

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
    if config.action == Action::Skipped {
        skipped::print(&client, &config.project, config.format).await?;
        return Ok(true);
    }
    #[expect(clippy::disallowed_methods, reason = "these are not settings of this program")]
    let environment = |name: &str| std::env::var(name).ok();
    let variables = Variables::new(&environment);
    let job = Job::detect(&variables).unwrap_or_default();
    let part = Part::new(&config, &job)?;
    let mut execution = match config.action {
        Action::Upload => {
            let reports = reports(files, !config.no_attachments)?;
            report(&client, &config, part, reports).await?
        }
        Action::Complete | Action::Skipped => {
            let execution = open(&client, &part.input).await?;
            part.warn_of_nothing(&execution);
            if execution.has_ended() {
                execution
            } else {
                complete(&client, &execution, None).await?
            }
        }
    };
    if config.wait || config.gate || config.comment {
        let timeout = Duration::from_mins(config.wait_minutes.into());
        execution = wait(&client, execution, timeout).await?;
    }
    print(text(&execution));
    let needs_verdict = config.gate || config.comment;
    let verdict = if needs_verdict { Some(verdict(&client, &execution).await?) } else { None };
    print(verdict.iter().flat_map(unmet));
    if let (true, Some(summary)) = (execution.has_ended(), &job.summary) {
        let markdown = match &verdict {
            Some(verdict) => verdict_markdown(&execution, verdict),
            None => markdown(&execution),
        };
        publish(summary, &execution, &markdown)?;
    }
    if let (true, Some(verdict)) = (config.comment, &verdict) {
        let host = job.host.as_ref();
        let token = config.comment_token.clone();
        let token = token.or_else(|| variables.get(host?.token()).map(Into::into));
        let feedback = Feedback::new(&client, &config, &execution, verdict);
        let published = async { feedback.await?.publish(host, token).await };
        if let Err(error) = published.await {
            tracing::warn!("cannot comment: {error:#}");
        }
    }
    Ok(match verdict {
        Some(verdict) if config.gate => verdict.has_passed(),
        _ => !config.wait || execution.has_passed(),
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
    let key = part.key().to_owned();
    for repeat in 2..=MAX_REPEATS {
        let execution = open(client, &part.input).await?;
        if !execution.has_ended() {
            part.warn_of_others(&execution);
            match report_to(client, config, &part, &execution, reports.clone()).await {
                Err(error) if has_ended(&error) => {}
                reported => return reported,
            }
        }
        part.repeat(&key, repeat)?;
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
