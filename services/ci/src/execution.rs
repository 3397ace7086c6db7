//! The execution that a job reports to.

use std::{fmt, time::Duration};

use anyhow::Context;
use assay_client::{Answer, Client, ClientError, Foreign, send};
use assay_proto::execution::OpenExecutionInput;
use reqwest::{
    Method, StatusCode,
    header::{ETAG, IF_NONE_MATCH},
};
use serde::{Deserialize, Deserializer, de};
use tokio::time::{Instant, sleep, timeout_at};
use uuid::Uuid;

/// First and maximum interval at which the end of an execution is waited for.
const FIRST_INTERVAL: Duration = Duration::from_secs(1);
const MAX_INTERVAL: Duration = Duration::from_secs(15);

/// Maximum number of unsuccessful tests that are listed.
const MAX_LISTED: usize = 20;

/// Maximum size of an execution, in bytes. It can have 100,000 test reports.
const LARGEST: u64 = 256 << 20;

/// The fields of an execution that matter to a job.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Execution {
    pub(crate) id: Uuid,
    pub(crate) project_id: Uuid,
    pub(crate) test_set_name: Foreign,
    /// The link to its page, if there is one.
    pub(crate) url: Option<Foreign>,
    pub(crate) completion_date_time: Option<Foreign>,
    pub(crate) result: Foreign,
    pub(crate) statistic: Statistic,
    #[serde(deserialize_with = "unsuccessful")]
    pub(crate) test_reports: Vec<TestReport>,
}

/// Numbers of test cases.
#[derive(Debug, Deserialize)]
pub(crate) struct Statistic {
    #[serde(rename = "TestCasesTotal")]
    pub(crate) total: u32,
    #[serde(rename = "TestCasesPassed")]
    pub(crate) passed: u32,
    #[serde(rename = "TestCasesFailed")]
    pub(crate) failed: u32,
    #[serde(rename = "TestCasesWithError", default)]
    pub(crate) with_error: u32,
}

impl Statistic {
    /// Returns the number of test cases that failed or could not run, as the verdict in Markdown counts them.
    pub(crate) fn failures(&self) -> u32 {
        self.failed.saturating_add(self.with_error)
    }
}

/// A test case of an execution.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct TestReport {
    pub(crate) result: Foreign,
    pub(crate) test_case_identifier: Foreign,
    #[serde(default)]
    pub(crate) is_flaky: bool,
}

impl TestReport {
    fn is_successful(&self) -> bool {
        matches!(self.result.raw(), "Passed" | "Canceled" | "NotExecuted") && !self.is_flaky
    }
}

impl Execution {
    pub(crate) fn has_ended(&self) -> bool {
        self.completion_date_time.is_some()
    }

    pub(crate) fn has_passed(&self) -> bool {
        self.result.raw() == "Passed"
    }

    pub(crate) fn path(&self) -> String {
        format!("/api/projects/{}/executions/{}", self.project_id, self.id)
    }
}

/// Reads the test reports one by one, and keeps the first unsuccessful ones.
fn unsuccessful<'de, D: Deserializer<'de>>(reports: D) -> Result<Vec<TestReport>, D::Error> {
    struct Unsuccessful;

    impl<'de> de::Visitor<'de> for Unsuccessful {
        type Value = Vec<TestReport>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an array of test reports")
        }

        fn visit_seq<A: de::SeqAccess<'de>>(self, mut reports: A) -> Result<Self::Value, A::Error> {
            let mut kept = Vec::new();
            while let Some(report) = reports.next_element::<TestReport>()? {
                if kept.len() < MAX_LISTED && !report.is_successful() {
                    kept.push(report);
                }
            }
            Ok(kept)
        }
    }

    reports.deserialize_seq(Unsuccessful)
}

/// Opens an execution, or returns the one with the same key.
pub(crate) async fn open(client: &Client, input: &OpenExecutionInput) -> anyhow::Result<Execution> {
    let request =
        |client: &Client| Ok(client.request(Method::POST, "/api/executions")?.json(input));
    read(client.send_reliably(request).await?).await
}

/// Completes the part of a reporter, or the whole execution.
pub(crate) async fn complete(
    client: &Client,
    execution: &Execution,
    reporter: Option<&str>,
) -> anyhow::Result<Execution> {
    let path = format!("{}/complete", execution.path());
    let reporter: Vec<_> = reporter.iter().map(|name| ("reporter", *name)).collect();
    let request = |client: &Client| Ok(client.request(Method::POST, &path)?.query(&reporter));
    read(client.send_reliably(request).await?).await
}

/// Waits until an execution has ended.
pub(crate) async fn wait(
    client: &Client,
    mut execution: Execution,
    timeout: Duration,
) -> anyhow::Result<Execution> {
    let deadline = Instant::now() + timeout;
    let (mut interval, mut version) = (FIRST_INTERVAL, None);
    while !execution.has_ended() {
        if Instant::now() + interval > deadline {
            anyhow::bail!(
                "{} has not ended after {} minutes; raise --wait-minutes, or find the job that has \
                 not completed",
                execution.path(),
                timeout.as_secs() / 60
            );
        }
        sleep(interval).await;
        interval = (interval * 2).min(MAX_INTERVAL);
        let refreshed = timeout_at(deadline, refresh(client, &execution, &mut version)).await;
        // The next turn ends the wait.
        let Ok(refreshed) = refreshed else { continue };
        match refreshed {
            Ok(Some(changed)) => {
                tracing::info!("waiting for the end; {} tests so far", changed.statistic.total);
                execution = changed;
            }
            Ok(None) => {}
            Err(error) if is_permanent(&error) => return Err(error),
            Err(error) => tracing::warn!(%error, "cannot read the execution; will retry"),
        }
    }
    Ok(execution)
}

fn is_permanent(error: &anyhow::Error) -> bool {
    error.downcast_ref::<ClientError>().is_some_and(ClientError::is_permanent)
}

/// Returns the execution if it has changed since the version.
async fn refresh(
    client: &Client,
    execution: &Execution,
    version: &mut Option<String>,
) -> anyhow::Result<Option<Execution>> {
    let mut request = client.request(Method::GET, &execution.path())?;
    if let Some(version) = version {
        request = request.header(IF_NONE_MATCH, version.as_str());
    }
    let response = send(request).await?;
    if response.status() == StatusCode::NOT_MODIFIED {
        return Ok(None);
    }
    *version = response.header(ETAG).map(str::to_owned);
    read(response).await.map(Some)
}

/// Parses an execution while it is received.
async fn read(answer: Answer) -> anyhow::Result<Execution> {
    let body = answer.reader(LARGEST);
    let parse = move || serde_json::from_reader(std::io::BufReader::new(body));
    let read = tokio::task::spawn_blocking(parse).await?.map_err(ClientError::from_json);
    read.context("Assay did not answer with an execution; check ASSAY_URL")
}
