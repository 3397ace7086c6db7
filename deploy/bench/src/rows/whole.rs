//! The list of 50,000 test cases: time to its first byte, and bytes a second.

use std::time::Instant;

use anyhow::{Context, Result};
use http::Method;

use super::measurement::Measurement;
use crate::{
    client::{Connection, Prepared, prepare},
    load::{Connections, Job},
    report::{Figure, Section, Unit, median},
    shape::Shape,
};

/// Minimum number of lists.
const LISTS: usize = 3;

/// Number of clients that read the list at once.
const READERS: usize = 20;

const MEGA: f64 = 1e6;

pub(super) async fn measure(to: &mut Measurement<'_>) -> Result<()> {
    const AGAINST_COPY: &str = "list of 50,000, against COPY to stdout";
    let project = to.system.fixture.long_project.clone().context("no long list")?;
    let request = prepare(&Method::GET, &format!("{project}/testcases"), to.system.token(), None);
    let mut connection = Connection::open(to.system.gateways()[0]).await?;
    let length = connection.count(request.clone()).await?.length;
    let (mut first_bytes, mut speeds) = (Vec::new(), Vec::new());
    let until = Instant::now() + to.time;
    while speeds.len() < LISTS || Instant::now() < until {
        let began = Instant::now();
        let list = connection.count(request.clone()).await?;
        anyhow::ensure!(list.length == length, "{} of {length} bytes", list.length);
        speeds.push(length as f64 / MEGA / began.elapsed().as_secs_f64());
        first_bytes.push((list.first_byte - began).as_secs_f64() * 1000.0);
    }
    let speed = median(&speeds);
    let shape = to.system.shape;
    let figure = |name, unit| Figure::new(Section::Batches, name, unit);
    let throughput = figure("list of 50,000", Unit::Megabytes);
    to.report.add(throughput, shape, to.round, speed);
    let against_copy = figure(AGAINST_COPY, Unit::Megabytes).with_goal("0.6");
    let speed = match shape {
        Shape::Baseline => to.system.floor()?.copy_list().await? / MEGA,
        _ => speed,
    };
    to.report.add(against_copy, shape, to.round, speed);
    let first_byte = figure("list of 50,000: first byte", Unit::Millis).with_goal("50 ms");
    to.report.add(first_byte, shape, to.round, median(&first_bytes));
    at_once(to, &request, length).await
}

/// Measures memory while many clients read the list at once.
async fn at_once(to: &mut Measurement<'_>, request: &Prepared, length: usize) -> Result<()> {
    const NAME: &str = "list of 50,000, 20 clients at once";
    to.forget_peaks()?;
    let began = Instant::now();
    let request = &|_| request.clone();
    let job = Job { request, status: 200, length: length..length + 1 };
    let mut connections = Connections::open(to.system.gateways(), READERS).await?;
    connections.send(&job, READERS).await?;
    let seconds = began.elapsed().as_secs_f64();
    let figure = Figure::new(Section::Batches, NAME, Unit::Seconds);
    to.report.add(figure, to.system.shape, to.round, seconds);
    to.peaks("long lists")
}
