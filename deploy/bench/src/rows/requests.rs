//! Small requests: throughput, latency, processor time and memory.

use anyhow::Result;
use bytes::Bytes;
use http::Method;
use serde_json::json;
use uuid::Uuid;

use super::measurement::Measurement;
use crate::{
    client::{Connection, Prepared, prepare},
    load::{Connections, Job},
    report::{Figure, Section, Unit},
    shape::Shape,
    system::{EMAIL, PASSWORD},
    usage::{self, Times},
};

/// Number of connections for throughput.
const CONNECTIONS: usize = 32;

/// Part of the time of a load that passes before it is measured.
const WARM_UP: u32 = 4;

/// Minimum share of the processor time for which a program is shown.
const LEAST_SHARE: f64 = 0.03;

/// Relative difference of the lengths of responses, for ids and numbers of varying length.
const TOLERANCE: usize = 10;

/// Goals of a row, as shown in the tables.
struct Goals {
    throughput: &'static str,
    p99: &'static str,
}

const READS: &str = "5 (2) ms";
const WRITES: &str = "15 (8) ms";

pub(super) async fn read(to: &mut Measurement<'_>) -> Result<()> {
    if to.system.shape == Shape::Baseline {
        let floor = to.system.floor()?.pgbench_read(to.time).await?;
        to.floor("read by id: pgbench, 8 connections", floor);
    }
    let (project, cases) = (to.system.fixture.project.clone(), to.system.fixture.cases.clone());
    let token = to.system.token().to_owned();
    let request = move |n| {
        let path = format!("{project}/testcases/{}", cases[scattered(n, cases.len())]);
        prepare(&Method::GET, &path, &token, None)
    };
    let goals = Goals { throughput: "1.0 (2.0); one process 1.2 (2.5)", p99: READS };
    measure(to, "read by id", 200, &request, goals).await
}

pub(super) async fn list(to: &mut Measurement<'_>) -> Result<()> {
    let path = format!("{}/testcases?limit=100", to.system.fixture.project);
    let request = prepare(&Method::GET, &path, to.system.token(), None);
    let goals = Goals { throughput: "1.0 (1.3)", p99: READS };
    measure(to, "list of 100", 200, &move |_| request.clone(), goals).await
}

pub(super) async fn create(to: &mut Measurement<'_>) -> Result<()> {
    if to.system.shape == Shape::Baseline {
        let floor = to.system.floor()?.pgbench_create(to.time).await?;
        to.floor("create: pgbench, 8 connections", floor);
    }
    let path = format!("{}/testcases", to.system.fixture.growing_project);
    let (token, series) = (to.system.token().to_owned(), Uuid::now_v7());
    let request = move |n| {
        let body = format!(r#"{{"Identifier":"{series}-{n}","Name":"Made","Description":""}}"#);
        prepare(&Method::POST, &path, &token, Some(Bytes::from(body)))
    };
    let goals = Goals { throughput: "1.0 (2.0)", p99: WRITES };
    measure(to, "create", 201, &request, goals).await
}

pub(super) async fn update(to: &mut Measurement<'_>) -> Result<()> {
    if to.system.shape == Shape::Baseline {
        let floor = to.system.floor()?.pgbench_update(to.time).await?;
        to.floor("update: pgbench, 8 connections", floor);
    }
    let (project, cases) = (to.system.fixture.project.clone(), to.system.fixture.cases.clone());
    let token = to.system.token().to_owned();
    let request = move |n| {
        let path = format!("{project}/testcases/{}", cases[scattered(n, cases.len())]);
        let body = format!(r#"{{"Name":"Changed {n}"}}"#);
        prepare(&Method::PUT, &path, &token, Some(Bytes::from(body)))
    };
    let goals = Goals { throughput: "1.0 (2.0)", p99: WRITES };
    measure(to, "update", 200, &request, goals).await
}

pub(super) async fn login(to: &mut Measurement<'_>) -> Result<()> {
    let body = Bytes::from(json!({"Email": EMAIL, "Password": PASSWORD}).to_string());
    let request = prepare(&Method::POST, "/api/token/login", "", Some(body));
    let goals = Goals { throughput: "", p99: "" };
    measure(to, "login", 200, &move |_| request.clone(), goals).await
}

/// Returns an index that is far from that of the last request.
fn scattered(number: u64, count: usize) -> usize {
    let product = number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
    usize::try_from(product).unwrap_or_default() % count
}

impl Measurement<'_> {
    fn floor(&mut self, name: &str, per_second: Option<f64>) {
        if let Some(per_second) = per_second {
            let figure = Figure::new(Section::Throughput, name, Unit::PerSecond);
            self.report.add(figure, Shape::Baseline, self.round, per_second);
        }
    }

    fn add(&mut self, figure: Figure, value: f64) {
        self.report.add(figure, self.system.shape, self.round, value);
    }
}

/// Measures a kind of request in a closed loop on many connections and on one, then in an open loop
/// at half of the capacity.
async fn measure(
    to: &mut Measurement<'_>,
    name: &str,
    status: u16,
    request: &dyn Fn(u64) -> Prepared,
    goals: Goals,
) -> Result<()> {
    let first = Connection::open(to.system.gateways()[0]).await?.count(request(u64::MAX)).await?;
    let length = first.length - first.length / TOLERANCE..first.length + first.length / TOLERANCE;
    let job = Job { request, status, length };
    job.check(&first)?;
    let mut connections = Connections::open(to.system.gateways(), CONNECTIONS).await?;
    connections.closed_loop(&job, CONNECTIONS, to.time / WARM_UP).await?;

    to.forget_peaks()?;
    let before = to.system.times();
    let busy = connections.closed_loop(&job, CONNECTIONS, to.time).await?;
    let capacity = busy.per_second();
    let throughput = Figure::new(Section::Throughput, name, Unit::PerSecond);
    to.add(throughput.with_goal(goals.throughput), capacity);
    to.peaks("small requests")?;
    // The work that follows from a request is part of its price.
    to.system.rest().await;
    processors(to, name, &before, busy.count() as f64);

    let alone = connections.closed_loop(&job, 1, to.time).await?;
    let half = connections.open_loop(&job, capacity / 2.0, to.time).await?;
    let latency =
        |what: &str| Figure::new(Section::Latency, &format!("{name}, {what}"), Unit::Millis);
    to.add(latency("one connection: median"), alone.percentile(50));
    to.add(latency("half of capacity: median"), half.percentile(50));
    to.add(latency("half of capacity: p99").with_goal(goals.p99), half.percentile(99));
    to.system.rest().await;
    Ok(())
}

/// Records the processor time of a request since `before`, by program.
fn processors(to: &mut Measurement<'_>, name: &str, before: &Times, requests: f64) {
    let spent = usage::micros_since(before, &to.system.times());
    let all: f64 = spent.values().sum();
    for (program, micros) in spent {
        if micros >= all * LEAST_SHARE {
            let name = format!("{name}: {program}");
            let figure = Figure::new(Section::Processor, &name, Unit::Micros);
            to.add(figure, micros / requests);
        }
    }
}
