//! Work of engines: a lease of a schedule, and the report of its only instance, which ends it.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use bytes::Bytes;
use futures::future::try_join_all;
use http::Method;
use serde_json::json;

use super::measurement::Measurement;
use crate::{
    client::{Connection, id, prepare},
    load::{Outcome, micros},
    report::{Figure, Section, Unit},
};

const ENGINES: usize = 8;

const LEASES: &str = "/api/automation/leases";

/// The lease begins with its id.
const BEFORE_ID: &[u8] = br#"[{"Id":""#;
const ID_LENGTH: usize = 36;

pub(super) async fn measure(to: &mut Measurement<'_>) -> Result<()> {
    let client = to.system.client();
    let set = to.system.fixture.queued_set.clone().context("no test set for engines")?;
    let execution = client.post(&format!("{set}/executions"), json!({})).await?;
    let (project, _) = set.split_once("/testsets/").context("not a test set")?;
    let execution = format!("{project}/executions/{}", id(&execution)?);

    let shape = to.system.shape;
    let alone = engines(to, 1).await?;
    let figure = |name: &str| Figure::new(Section::Latency, name, Unit::Millis);
    for (name, percent) in [("median", 50), ("p99", 99)] {
        let name = format!("lease and report, one engine: {name}");
        to.report.add(figure(&name), shape, to.round, alone.percentile(percent));
    }
    let many = engines(to, ENGINES).await?;
    let name = "lease and report, 8 engines";
    let figure = Figure::new(Section::Throughput, name, Unit::PerSecond);
    to.report.add(figure, shape, to.round, many.per_second());
    // The execution has ended if the engines were fast enough.
    drop(client.delete(&execution).await);
    to.system.rest().await;
    Ok(())
}

/// Runs engines until the time has passed or the queue is empty.
async fn engines(to: &Measurement<'_>, count: usize) -> Result<Outcome> {
    let began = Instant::now();
    let gateways = to.system.gateways().iter().cycle().take(count);
    let engines = gateways.map(async |gateway| {
        let mut connection = Connection::open(*gateway).await?;
        let mut latencies = Vec::new();
        while began.elapsed() < to.time {
            let Some(time) = turn(&mut connection, to.system.token()).await? else { break };
            latencies.push(micros(time));
        }
        anyhow::Ok(latencies)
    });
    let latencies = try_join_all(engines).await?.concat();
    Ok(Outcome::new(began.elapsed().as_secs_f64(), latencies))
}

/// Takes one schedule off the queue and reports its result. Returns `None` if the queue is empty.
async fn turn(connection: &mut Connection, token: &str) -> Result<Option<Duration>> {
    let lease = prepare(&Method::POST, LEASES, token, Some(Bytes::from_static(b"{}")));
    let began = Instant::now();
    let leased = connection.read(lease).await?;
    let Some(rest) = leased.strip_prefix(BEFORE_ID) else { return Ok(None) };
    let id = std::str::from_utf8(rest.get(..ID_LENGTH).context("no id of a lease")?)?;
    let result =
        Bytes::from_static(br#"[{"InstanceNr":1,"Result":"Passed","DurationInSec":1,"Steps":[]}]"#);
    let report = format!("{LEASES}/{id}/instances");
    connection.read(prepare(&Method::POST, &report, token, Some(result))).await?;
    Ok(Some(began.elapsed()))
}
