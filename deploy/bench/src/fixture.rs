//! The data that requests read and change.

use std::sync::LazyLock;

use anyhow::{Context, Result};
use bytes::Bytes;
use http::Method;
use serde_json::{Value, json};

use crate::{
    client::{Client, id, prepare, prepare_with},
    load::{Connections, Job},
    row::Row,
};

/// Number of test cases that are read and changed.
pub(crate) const CASES: usize = 2_000;

/// Number of test cases in the long list.
pub(crate) const LISTED: usize = 50_000;

/// Number of test cases in an import.
pub(crate) const IMPORTED: usize = 10_000;

/// Number of results in a request.
pub(crate) const RESULTS: usize = 10_000;

/// Number of tests in the set that engines run.
const QUEUED: usize = 2_000;

/// Number of connections that create plans.
const CONNECTIONS: usize = 8;

/// Steps of each result, a JSON array.
pub(crate) static STEPS_OF_RESULT: LazyLock<String> = LazyLock::new(|| {
    let step = |nr: u32| {
        json!({
            "StepNr": nr,
            "TestInput": format!("add item {nr}"),
            "ActualResult": format!("the cart shows {nr} items"),
            "Result": "Passed",
            "DurationInSec": 0.05,
        })
    };
    (1..=20).map(step).collect::<Value>().to_string()
});

/// Paths of records.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fixture {
    /// The project with the test cases that are read and changed.
    pub(crate) project: String,
    /// Ids of these test cases.
    pub(crate) cases: Vec<String>,
    /// The project in which test cases are created.
    pub(crate) growing_project: String,
    /// The project with the long list.
    pub(crate) long_project: Option<String>,
    /// The test set that engines run.
    pub(crate) queued_set: Option<String>,
}

impl Fixture {
    /// Creates the records that the rows need.
    pub(crate) async fn create(client: &Client, rows: &[Row]) -> Result<Self> {
        let project = create_project(client, "Cases").await?;
        import(client, &project, 0, CASES).await?;
        let cases = client.get(&format!("{project}/testcases")).await?;
        let cases = cases.as_array().context("no test cases")?;
        let cases = cases.iter().map(id).collect::<Result<Vec<_>>>()?;
        create_plans(client, &project, &cases).await?;
        let growing_project = create_project(client, "Growing").await?;
        let mut fixture =
            Self { project, cases, growing_project, long_project: None, queued_set: None };
        if rows.contains(&Row::Whole) {
            let project = create_project(client, "Many").await?;
            for first in (0..LISTED).step_by(IMPORTED) {
                import(client, &project, first, IMPORTED).await?;
            }
            fixture.long_project = Some(project);
        }
        if rows.contains(&Row::Leases) {
            let set = create_set(client, "Queued").await?;
            upload(client, &set, "queued", QUEUED).await?;
            fixture.queued_set = Some(set);
        }
        Ok(fixture)
    }
}

/// Creates a project; returns its path.
pub(crate) async fn create_project(client: &Client, name: &str) -> Result<String> {
    let project = client.post("/api/projects", json!({"Name": name})).await?;
    Ok(format!("/api/projects/{}", id(&project)?))
}

/// Creates a test set in a project of its own; returns its path.
pub(crate) async fn create_set(client: &Client, name: &str) -> Result<String> {
    let project = create_project(client, name).await?;
    let set = client.post(&format!("{project}/testsets"), json!({"Name": name})).await?;
    Ok(format!("{project}/testsets/{}", id(&set)?))
}

/// Imports test cases with consecutive numbers.
pub(crate) async fn import(
    client: &Client,
    project: &str,
    first: usize,
    count: usize,
) -> Result<()> {
    let case = |n: usize| {
        let (identifier, name) = (format!("case-{n}"), format!("Case {n}"));
        json!({"Identifier": identifier, "Name": name, "Description": "d".repeat(200)})
    };
    let cases = (first..first + count).map(case).collect();
    client.post(&format!("{project}/testcases/import"), cases).await?;
    Ok(())
}

/// Gives each test case a plan.
async fn create_plans(client: &Client, project: &str, cases: &[String]) -> Result<()> {
    let plan = Bytes::from_static(br#"{"Instances":1}"#);
    let request = |n: u64| {
        let case = usize::try_from(n).ok().and_then(|n| cases.get(n));
        let path = format!("{project}/testcases/{}/testplans", case.map_or("", |case| case));
        prepare(&Method::POST, &path, &client.token, Some(plan.clone()))
    };
    let job = Job { request: &request, status: 201, length: 1..usize::MAX };
    let mut connections = Connections::open(&[client.address], CONNECTIONS).await?;
    connections.send(&job, cases.len()).await
}

/// Uploads a JUnit report of a suite of passed tests to a test set.
pub(crate) async fn upload(client: &Client, set: &str, suite: &str, tests: usize) -> Result<()> {
    let test = |n| format!(r#"<testcase classname="{suite}" name="test {n}" time="0.1"/>"#);
    let tests = (0..tests).map(test).collect::<String>();
    send_report(client, set, &format!(r#"<testsuite name="many">{tests}</testsuite>"#)).await
}

/// Uploads a JUnit report as an execution of a test set.
pub(crate) async fn send_report(client: &Client, set: &str, report: &str) -> Result<()> {
    let (path, report) = (format!("{set}/results"), Bytes::from(report.to_owned()));
    let request =
        prepare_with(&Method::POST, &path, &client.token, "application/xml", Some(report));
    client.count(request).await
}
