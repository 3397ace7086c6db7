//! Reads that judge an execution of 20,000 tests: what is new in it, its causes, and its set; and the
//! pages that show them.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use http::{HeaderValue, Method, header::COOKIE};
use serde_json::{Value, json};
use tokio::time::sleep;

use super::{
    growth::{Copies, grow},
    measurement::{Measurement, times_to_read},
};
use crate::{
    client::{Client, Prepared, id, prepare},
    fixture::{create_set, send_report},
    report::{Figure, Section, Unit, percentile},
};

/// Number of tests in an execution.
const TESTS: usize = 20_000;

/// Number of tests that fail in it, and of their causes.
const FAILING: usize = 400;
const CAUSES: usize = 20;

/// Number of executions. Each is compared with ten before it.
const EXECUTIONS: usize = 12;

/// Maximum time until the results of ended executions are added up.
const ROLLUP: Duration = Duration::from_mins(2);

/// Number of reads of each kind.
const READS: usize = 40;

/// Number of executions in a project with 10,000,000 reports, and SQL of the time of the first one.
const MANY_EXECUTIONS: usize = 500;
const MANY_SINCE: &str = "now() - interval '80 days'";

pub(super) async fn measure(to: &mut Measurement<'_>) -> Result<()> {
    let set = execute(to).await?;
    read(to, &set, "").await
}

/// Measures the same reads in a project with 10,000,000 reports.
pub(super) async fn measure_grown(to: &mut Measurement<'_>) -> Result<()> {
    let set = execute(to).await?;
    let client = to.system.client();
    paths(&client, &set).await?;
    let (_, id) = set.rsplit_once('/').context("not a test set")?;
    let copies = Copies { executions: MANY_EXECUTIONS, instances: 1, since: MANY_SINCE };
    grow(to, id, copies).await?;
    read(to, &set, " among 10,000,000 reports").await?;
    backtest(to, &set).await
}

/// Measures a backtest of all executions of a test set. With another threshold of flakiness, their failures are judged
/// again.
async fn backtest(to: &mut Measurement<'_>, set: &str) -> Result<()> {
    let client = to.system.client();
    let (mut executions, mut cursor) = (0, Value::Null);
    let began = Instant::now();
    loop {
        let input = json!({"Gate": {"FlakyAfterBreaks": 4}, "Cursor": cursor});
        let mut found = client.post(&format!("{set}/backtests"), input).await?;
        executions += found["Executions"].as_u64().context("no number of executions")?;
        cursor = found["NextCursor"].take();
        if cursor.is_null() {
            break;
        }
    }
    let took = began.elapsed().as_secs_f64();
    ensure!(executions >= MANY_EXECUTIONS as u64, "{executions} executions were judged");
    let name = "backtest of a gate among 10,000,000 reports";
    let figure = Figure::new(Section::Batches, name, Unit::Seconds).with_goal("60 s");
    to.report.add(figure, to.system.shape, to.round, took);
    Ok(())
}

/// Creates a test set and its executions.
async fn execute(to: &mut Measurement<'_>) -> Result<String> {
    let client = to.system.client();
    let set = create_set(&client, "Judged").await?;
    for execution in 0..EXECUTIONS {
        let began = Instant::now();
        send_report(&client, &set, &report(execution)).await?;
        if execution == EXECUTIONS - 1 {
            let name = format!("JUnit, 20,000 known tests, {FAILING} of which fail");
            let figure = Figure::new(Section::Batches, &name, Unit::Seconds);
            to.report.add(figure, to.system.shape, to.round, began.elapsed().as_secs_f64());
        }
    }
    to.system.rest().await;
    Ok(set)
}

async fn read(to: &mut Measurement<'_>, set: &str, among: &str) -> Result<()> {
    let client = to.system.client();
    let reads = paths(&client, set).await?.into_iter();
    let reads = reads.map(|(name, path)| (name, prepare(&Method::GET, &path, &client.token, None)));
    let pages = pages(&client, set).await?;
    for (name, request) in reads.chain(pages) {
        let times = times_to_read(&client, &request, READS).await?;
        let name = format!("{name} of 20,000 tests{among}: p95");
        let figure = Figure::new(Section::Latency, &name, Unit::Millis).with_goal("50 ms");
        to.report.add(figure, to.system.shape, to.round, percentile(&times, 95));
    }
    Ok(())
}

/// Returns a report in which other tests fail than in the one before, half of them.
fn report(execution: usize) -> String {
    let first = execution * FAILING / 2;
    let tests: String = (0..TESTS).fold(String::new(), |tests, n| {
        let failure = match n.checked_sub(first).filter(|failing| *failing < FAILING) {
            Some(failing) => format!(
                r#"<failure message="ServiceError: service-{} did not answer in {n} ms"/>"#,
                char::from(b'a' + u8::try_from(failing % CAUSES).unwrap_or_default())
            ),
            None => String::new(),
        };
        let time = n % 97;
        tests
            + &format!(
                r#"<testcase classname="judged" name="test {n}" time="{time}">{failure}</testcase>"#
            )
    });
    format!(r#"<testsuite name="many">{tests}</testsuite>"#)
}

/// Waits until the rankings of the project contain an execution, and returns their paths.
async fn rankings(
    client: &Client,
    project: &str,
    execution: &str,
) -> Result<Vec<(&'static str, String)>> {
    let began = Instant::now();
    loop {
        let newest = client.get(&format!("{project}/insights?kind=NewlyFailing&limit=1")).await?;
        if newest[0]["LastExecutionId"] == execution {
            break;
        }
        ensure!(began.elapsed() < ROLLUP, "the results are not added up");
        sleep(Duration::from_millis(200)).await;
    }
    let ranking = |kind: &str| format!("{project}/insights?kind={kind}&days=90&limit=20");
    Ok(vec![
        ("20 flaky", ranking("Flaky")),
        ("20 newly failing", ranking("NewlyFailing")),
        ("20 most failed", ranking("MostFailed")),
        ("20 slowest", ranking("Slowest")),
        ("20 slower", ranking("Slower")),
        ("none that never ran", format!("{project}/testcases/neverrun?limit=20")),
    ])
}

/// Returns what is read.
async fn paths(client: &Client, set: &str) -> Result<Vec<(&'static str, String)>> {
    let (project, _) = set.split_once("/testsets/").context("not a test set")?;
    let latest = id(&client.get(&format!("{project}/executions?limit=1")).await?[0])?;
    let execution = format!("{project}/executions/{latest}");
    let cause = client.get(&format!("{execution}/failures?limit=1")).await?[0]["Fingerprint"]
        .as_str()
        .context("no failure")?
        .to_owned();
    let mut paths = rankings(client, project, &latest).await?;
    paths.extend([
        ("summary", format!("{execution}/summary")),
        ("verdict", format!("{execution}/verdict")),
        ("25 causes", format!("{execution}/failures?limit=25")),
        ("25 causes of new failures", format!("{execution}/failures?change=New&limit=25")),
        ("50 reports", format!("{execution}/reports?limit=50")),
        ("50 new failures", format!("{execution}/reports?change=New&limit=50")),
        ("50 reports of a cause", format!("{execution}/reports?fingerprint={cause}&limit=50")),
        ("50 reports by name", format!("{execution}/reports?q=test%2019&limit=50")),
        ("comparison", format!("{execution}/comparison?limit=100")),
        ("grid of 50 by 20", format!("{set}/grid")),
    ]);
    Ok(paths)
}

/// Returns the requests for pages, with the cookie of a session.
async fn pages(client: &Client, set: &str) -> Result<Vec<(&'static str, Prepared)>> {
    let (project, set) = set.split_once("/testsets/").context("not a test set")?;
    let latest = id(&client.get(&format!("{project}/executions?limit=1")).await?[0])?;
    let failed = format!("{project}/executions/{latest}/reports?change=New&limit=1");
    let failed = &client.get(&failed).await?[0];
    let (fingerprint, case) = (failed["Fingerprint"].as_str(), failed["TestCaseId"].as_str());
    let (fingerprint, case) = fingerprint.zip(case).context("no failure")?;
    let project = project.trim_start_matches("/api");
    let execution = format!("/executions/{latest}");
    let paths = [
        ("page of new failures", execution.clone()),
        ("page of all tests", format!("{execution}?view=all")),
        ("page of a cause", format!("{execution}?fingerprint={fingerprint}")),
        ("page of a failure", format!("/reports/{}", id(failed)?)),
        ("page of the set, a grid of 50 by 20", format!("{project}/sets/{set}")),
        ("page of the project", project.to_owned()),
        ("page of a test case", format!("/cases/{case}")),
        ("page of insights", format!("{project}/insights")),
    ];
    let cookie = HeaderValue::try_from(format!("assay={}", client.token))?;
    let request = |path: &str| {
        let mut request = prepare(&Method::GET, path, "", None);
        request.headers_mut().insert(COOKIE, cookie.clone());
        request
    };
    Ok(paths.map(|(name, path)| (name, request(&path))).into())
}
