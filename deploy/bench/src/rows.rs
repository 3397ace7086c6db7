//! The rows of the tables: what is measured.

mod growth;
mod judgement;
mod junit;
mod leases;
mod pipeline;
mod requests;
mod restart;
mod results;
mod stream;
mod whole;

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use http::Method;

use crate::{
    client::{Client, Connection, Prepared, prepare},
    report::{Figure, Report, Section, Unit, median},
    system::{Shape, System},
    usage,
};

/// A row, measured in each system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
pub(crate) enum Row {
    /// Read a test case by id
    Read,
    /// List of 100 test cases
    List,
    /// Create a test case
    Create,
    /// Update a test case
    Update,
    /// Login with a password
    Login,
    /// List of 50,000 test cases
    Whole,
    /// JUnit reports of 20,000 and 3,400 tests, new and known ones
    Junit,
    /// 10,000 results with 20 steps each in one request, and reads of them
    Results,
    /// Work of engines: a lease and the report of its result
    Leases,
    /// Notification to 100 event streams
    Stream,
    /// Import of 10,000 test cases until a webhook has received all
    Pipeline,
    /// Start and stop of the programs
    Restart,
    /// Executions of 20,000 tests with failures, and reads that judge them
    Judgement,
    /// Reads among 10,000 and 10,000,000 instances; takes minutes and 6 GB, so only if it is named
    Growth,
    /// Reads that judge in a project with 10,000,000 reports; takes minutes and 15 GB, so only if it
    /// is named
    Judgements,
}

/// A measurement of one row in one system.
pub(crate) struct Measurement<'a> {
    pub(crate) system: &'a mut System,
    pub(crate) report: &'a mut Report,
    /// Duration of a load.
    pub(crate) time: Duration,
    pub(crate) round: usize,
}

impl Measurement<'_> {
    /// Resets the maximum memory of the programs.
    fn forget_peaks(&self) -> Result<()> {
        self.system.pids().try_for_each(|(_, pid)| usage::forget_peak(pid))
    }

    /// Records the maximum memory of each program during work of a kind. Of all rows, the largest
    /// counts.
    fn peaks(&mut self, of: &str) -> Result<()> {
        for (program, pid) in self.system.pids() {
            let name = format!("{program}, maximum of {of}");
            let figure = Figure::new(Section::Memory, &name, Unit::Mebibytes).with_goal("64 MiB");
            self.report.add(figure, self.system.shape, self.round, usage::memory(pid)?.peak);
        }
        Ok(())
    }
}

impl Row {
    /// Whether the row exists in a system of this shape.
    pub(crate) fn is_in(self, shape: Shape) -> bool {
        let in_baseline =
            [Self::Read, Self::List, Self::Create, Self::Update, Self::Whole, Self::Results];
        match shape {
            Shape::Line => matches!(self, Self::Read | Self::List),
            Shape::Baseline => in_baseline.contains(&self),
            _ => true,
        }
    }

    pub(crate) async fn measure(self, to: &mut Measurement<'_>) -> Result<()> {
        match self {
            Self::Read => requests::read(to).await,
            Self::List => requests::list(to).await,
            Self::Create => requests::create(to).await,
            Self::Update => requests::update(to).await,
            Self::Login => requests::login(to).await,
            Self::Whole => whole::measure(to).await,
            Self::Junit => junit::measure(to).await,
            Self::Results => results::measure(to).await,
            Self::Leases => leases::measure(to).await,
            Self::Stream => stream::measure(to).await,
            Self::Pipeline => pipeline::measure(to).await,
            Self::Restart => restart::measure(to).await,
            Self::Judgement => judgement::measure(to).await,
            Self::Growth => growth::measure(to).await,
            Self::Judgements => judgement::measure_grown(to).await,
        }
    }
}

/// Returns the median time of this number of reads of a path, in milliseconds.
async fn time_to_read(client: &Client, path: &str, reads: usize) -> Result<f64> {
    let request = prepare(&Method::GET, path, &client.token, None);
    Ok(median(&times_to_read(client, &request, reads).await?))
}

/// Returns the times of this number of equal requests, in milliseconds.
async fn times_to_read(client: &Client, request: &Prepared, reads: usize) -> Result<Vec<f64>> {
    let mut connection = Connection::open(client.address).await?;
    let mut times = Vec::new();
    while times.len() < reads {
        let began = Instant::now();
        let response = connection.count(request.clone()).await?;
        ensure!(response.status.is_success(), "{}: {}", request.uri(), response.status);
        times.push(began.elapsed().as_secs_f64() * 1000.0);
    }
    Ok(times)
}
