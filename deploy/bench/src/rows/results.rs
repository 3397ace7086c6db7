//! 10,000 results with 20 steps each, and reads of their report.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use http::Method;
use serde_json::json;

use super::measurement::{Measurement, time_to_read};
use crate::{
    client::{Client, id, prepare_with},
    fixture::{RESULTS, STEPS_OF_RESULT, create_project},
    report::{Figure, Section, Unit, median},
    shape::Shape,
};

/// Number of reads of each kind.
const READS: usize = 20;

/// Minimum number of requests with results.
const REQUESTS: usize = 3;

pub(super) async fn measure(to: &mut Measurement<'_>) -> Result<()> {
    let mut speeds = Vec::new();
    if to.system.shape == Shape::Baseline {
        while speeds.len() < REQUESTS {
            speeds.push(to.system.floor()?.copy_results().await?);
        }
    } else {
        let client = to.system.client();
        let set = Set::create(&client).await?;
        let results = Bytes::from((1..=RESULTS).map(result).collect::<String>());
        let mut execution = String::new();
        to.forget_peaks()?;
        while speeds.len() < REQUESTS {
            execution = set.start(&client).await?;
            let time = report(&client, &execution, results.clone()).await?;
            speeds.push(RESULTS as f64 / time.as_secs_f64());
        }
        to.peaks("batches")?;
        reads(to, &client, &set, &execution).await?;
    }
    let name = "results with 20 steps, 10,000 in a request, against COPY from stdin";
    let figure = Figure::new(Section::Batches, name, Unit::PerSecond);
    let figure = figure.with_goal("20,000/s; 0.5");
    to.report.add(figure, to.system.shape, to.round, median(&speeds));
    to.system.rest().await;
    Ok(())
}

fn result(nr: usize) -> String {
    let (seconds, steps) = (nr % 100 / 10, &*STEPS_OF_RESULT);
    format!(
        "{{\"Identifier\":\"batch\",\"InstanceNr\":{nr},\"Result\":\"Passed\",\
         \"DurationInSec\":{seconds},\"Steps\":{steps}}}\n"
    )
}

/// A test set with one test case, whose plan has as many instances as a request has results.
struct Set {
    project: String,
    path: String,
    case: String,
    plans: String,
}

impl Set {
    async fn create(client: &Client) -> Result<Self> {
        let project = create_project(client, "Results").await?;
        let case = json!({"Name": "Batch", "Identifier": "batch"});
        let case = id(&client.post(&format!("{project}/testcases"), case).await?)?;
        let plans = format!("{project}/testcases/{case}/testplans");
        let plan = json!({"Instances": RESULTS, "TestType": "Performance"});
        let plan = id(&client.post(&plans, plan).await?)?;
        client.put(&format!("{plans}/{plan}"), json!({"Status": "ReadyForExecution"})).await?;
        let set = client.post(&format!("{project}/testsets"), json!({"Name": "Batch"})).await?;
        let path = format!("{project}/testsets/{}", id(&set)?);
        client.post(&format!("{path}/testcases"), json!({"Id": case})).await?;
        let case = format!("{project}/testcases/{case}");
        Ok(Self { project, path, case, plans })
    }

    /// Starts an execution that takes results; returns its path.
    async fn start(&self, client: &Client) -> Result<String> {
        let start = format!("{}/executions", self.path);
        let execution = client.post(&start, json!({"Mode": "External"})).await?;
        Ok(format!("{}/executions/{}", self.project, id(&execution)?))
    }
}

async fn report(client: &Client, execution: &str, results: Bytes) -> Result<Duration> {
    let path = format!("{execution}/results");
    let media_type = "application/x-ndjson";
    let request = prepare_with(&Method::POST, &path, &client.token, media_type, Some(results));
    let began = Instant::now();
    let reported = client.send(request).await?;
    let time = began.elapsed();
    ensure!(reported["Accepted"] == RESULTS, "{reported} of {RESULTS} results accepted");
    Ok(time)
}

/// Measures reads of the report and its statistics.
async fn reads(
    to: &mut Measurement<'_>,
    client: &Client,
    set: &Set,
    execution: &str,
) -> Result<()> {
    let report = client.get(execution).await?["TestReports"][0].take();
    let plan = report["TestPlanId"].as_str().context("no plan")?;
    let report = format!("{}/{plan}/testreports/{}", set.plans, id(&report)?);
    let instances = format!("{report}/instances");
    let first = id(&client.get(&format!("{instances}?limit=1")).await?[0])?;
    for (name, path, goal) in [
        ("quartiles of 10,000 instances", format!("{instances}/{first}/stats"), "10 ms"),
        ("instance with 20 steps and their history", format!("{instances}/{first}"), ""),
        ("first 100 of 10,000 instances", format!("{instances}?limit=100"), ""),
        ("history of a test case", format!("{}/history", set.case), ""),
        ("statistics of a test set", format!("{}/stats", set.path), ""),
    ] {
        let time = time_to_read(client, &path, READS).await?;
        let figure = Figure::new(Section::Latency, name, Unit::Millis).with_goal(goal);
        to.report.add(figure, to.system.shape, to.round, time);
    }
    Ok(())
}
