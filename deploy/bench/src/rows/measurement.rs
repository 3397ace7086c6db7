//! A measurement of one row, and reads that most rows have in common.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use http::Method;

use crate::{
    client::{Client, Connection, Prepared, prepare},
    report::{Figure, Report, Section, Unit, median},
    system::System,
    usage,
};

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
    pub(super) fn forget_peaks(&self) -> Result<()> {
        self.system.pids().try_for_each(|(_, pid)| usage::forget_peak(pid))
    }

    /// Records the maximum memory of each program during work of a kind. Of all rows, the largest
    /// counts.
    pub(super) fn peaks(&mut self, of: &str) -> Result<()> {
        for (program, pid) in self.system.pids() {
            let name = format!("{program}, maximum of {of}");
            let figure = Figure::new(Section::Memory, &name, Unit::Mebibytes).with_goal("64 MiB");
            self.report.add(figure, self.system.shape, self.round, usage::memory(pid)?.peak);
        }
        Ok(())
    }
}

/// Returns the median time of this number of reads of a path, in milliseconds.
pub(super) async fn time_to_read(client: &Client, path: &str, reads: usize) -> Result<f64> {
    let request = prepare(&Method::GET, path, &client.token, None);
    Ok(median(&times_to_read(client, &request, reads).await?))
}

/// Returns the times of this number of equal requests, in milliseconds.
pub(super) async fn times_to_read(
    client: &Client,
    request: &Prepared,
    reads: usize,
) -> Result<Vec<f64>> {
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
