//! Reads of the results of a test set with 10,000 instances, and of one with 10,000,000.

use anyhow::{Context, Result};
use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection as _, PgConnection};

use super::measurement::{Measurement, time_to_read};
use crate::{
    client::{Client, id},
    fixture::{create_set, upload},
    report::{Figure, Section, Unit},
};

/// Number of test cases in an execution. Each has ten instances.
const CASES: usize = 10;

/// The instances of this month are in a partition of their own.
const THIS_MONTH: &str = "date_trunc('month', now())";

/// Number of reads of each kind.
const READS: usize = 50;

const COPIES: &str = include_str!("growth/copies.sql");

pub(super) async fn measure(to: &mut Measurement<'_>) -> Result<()> {
    let client = to.system.client();
    for (instances, executions) in [("10,000", 100), ("10,000,000", 100_000)] {
        let set = create_set(&client, "Growth").await?;
        upload(&client, &set, "growth", CASES).await?;
        let (_, id) = set.rsplit_once('/').context("not a test set")?;
        grow(to, id, Copies { executions, instances: 10, since: THIS_MONTH }).await?;
        for (name, path) in paths(&client, &set).await? {
            let time = time_to_read(&client, &path, READS).await?;
            let name = format!("{name} among {instances} instances");
            let figure = Figure::new(Section::Latency, &name, Unit::Millis);
            to.report.add(figure, to.system.shape, to.round, time);
        }
    }
    Ok(())
}

/// Copies of an execution.
pub(super) struct Copies {
    /// Number of executions of the set with the copies.
    pub(super) executions: usize,
    /// Number of instances of each report.
    pub(super) instances: usize,
    /// SQL of the time from which on they are spread.
    pub(super) since: &'static str,
}

/// Adds executions of a set, which is faster than uploading them.
pub(super) async fn grow(to: &Measurement<'_>, set: &str, copies: Copies) -> Result<()> {
    let mut database: PgConnection = to.system.database("execution").connect().await?;
    let copies = COPIES
        .replace("{set}", set)
        .replace("{copies}", &copies.executions.to_string())
        .replace("{instances}", &copies.instances.to_string())
        .replace("{since}", copies.since);
    let mut tx = database.begin().await?;
    sqlx::raw_sql(AssertSqlSafe(copies)).execute(&mut *tx).await?;
    tx.commit().await?;
    // Pages of the copies that are still to be written would slow down the reads that are measured.
    for statement in ["vacuum analyze", "checkpoint"] {
        sqlx::raw_sql(statement).execute(&mut database).await?;
    }
    database.close().await?;
    Ok(())
}

/// Returns what is read.
async fn paths(client: &Client, set: &str) -> Result<Vec<(&'static str, String)>> {
    let (project, _) = set.split_once("/testsets/").context("not a test set")?;
    let executions = format!("{project}/executions");
    // The latest one is the original.
    let copy = id(&client.get(&format!("{executions}?limit=2")).await?[1])?;
    let execution = format!("{executions}/{copy}");
    let report = client.get(&execution).await?["TestReports"][0].take();
    let text = |field: &str| report[field].as_str().map(ToOwned::to_owned).context("no such field");
    let case = format!("{project}/testcases/{}", text("TestCaseId")?);
    let report = format!("{case}/testplans/{}/testreports/{}", text("TestPlanId")?, text("Id")?);
    let instances = format!("{report}/instances");
    let instance = id(&client.get(&format!("{instances}?limit=1")).await?[0])?;
    Ok(vec![
        ("history of a test case, 100 runs,", format!("{case}/history?limit=100")),
        ("statistics of a test set, 100 executions,", format!("{set}/stats?limit=100")),
        ("100 executions", format!("{executions}?limit=100")),
        ("execution", execution),
        ("test report", report),
        ("quartiles", format!("{instances}/{instance}/stats")),
        ("instance", format!("{instances}/{instance}")),
    ])
}
