//! The systems to measure: the baseline, also cut in two, and Assay in three shapes. Each has a PostgreSQL of its own
//! with the same settings, and Assay a NATS.

mod start;

use std::{
    net::SocketAddr,
    path::Path,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use assay_servers::{Nats, Postgres};
use futures::future::try_join_all;
use rustix::process::{Pid, Signal, kill_process};
use sqlx::postgres::PgConnectOptions;
use tempfile::TempDir;
use tokio::time::sleep;

use crate::{
    client::Client,
    fixture::Fixture,
    monolith::floor::Floor,
    program::Program,
    progress::progress,
    shape::Shape,
    usage::{self, Times},
};

pub(crate) use start::{EMAIL, Launch, PASSWORD};

/// Interval in which a system is observed until it rests.
const OBSERVATION: Duration = Duration::from_millis(400);

/// Maximum share of one processor that a resting system uses.
const REST: f64 = 0.1;

/// Maximum time until a system rests.
const LONGEST_REST: Duration = Duration::from_mins(2);

/// A running system with its data.
pub(crate) struct System {
    pub(crate) shape: Shape,
    pub(crate) fixture: Fixture,
    /// Seconds of the first start, on empty databases.
    pub(crate) first_start: f64,
    /// Resident memory of each program after the first start, in MiB.
    pub(crate) idle: Vec<(String, f64)>,
    /// The database of the baseline.
    pub(crate) floor: Option<Floor>,
    gateways: Vec<SocketAddr>,
    token: String,
    programs: Vec<Program>,
    postgres: Postgres,
    nats: Option<Nats>,
    dir: TempDir,
}

impl System {
    /// The addresses of `/api`.
    pub(crate) fn gateways(&self) -> &[SocketAddr] {
        &self.gateways
    }

    pub(crate) fn token(&self) -> &str {
        &self.token
    }

    pub(crate) fn client(&self) -> Client {
        Client { address: self.gateways[0], token: self.token.clone() }
    }

    /// Returns the directory of the data, which is on the disk with the files of Assay.
    pub(crate) fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// Returns the database of the baseline.
    pub(crate) fn floor(&self) -> Result<&Floor> {
        self.floor.as_ref().context("only the baseline has a floor")
    }

    /// Returns the options of connections to the database of a service.
    pub(crate) fn database(&self, service: &str) -> PgConnectOptions {
        match self.shape {
            Shape::One => self.postgres.options(&format!("assay_{service}")),
            _ => self.postgres.options(service),
        }
    }

    /// Returns the URL of NATS.
    pub(crate) fn nats_url(&self) -> Result<&str> {
        Ok(self.nats()?.url())
    }

    /// Suspends NATS, so that events wait in the outboxes.
    pub(crate) fn suspend_nats(&self) -> Result<()> {
        self.signal_nats(Signal::STOP)
    }

    pub(crate) fn resume_nats(&self) -> Result<()> {
        self.signal_nats(Signal::CONT)
    }

    fn signal_nats(&self, signal: Signal) -> Result<()> {
        let pid = Pid::from_raw(self.nats()?.pid().cast_signed()).context("no process of NATS")?;
        Ok(kill_process(pid, signal)?)
    }

    fn nats(&self) -> Result<&Nats> {
        self.nats.as_ref().context("the baseline has no NATS")
    }

    /// Starts the programs. Returns the seconds until all are ready.
    pub(crate) async fn start(&mut self) -> Result<f64> {
        let began = Instant::now();
        self.programs.iter_mut().try_for_each(Program::start)?;
        try_join_all(self.programs.iter_mut().map(Program::ready)).await?;
        Ok(began.elapsed().as_secs_f64())
    }

    /// Stops the programs. Returns the seconds until all have ended.
    pub(crate) async fn stop_programs(&mut self) -> Result<f64> {
        let began = Instant::now();
        self.programs.iter().try_for_each(Program::terminate)?;
        try_join_all(self.programs.iter_mut().map(Program::ended)).await?;
        Ok(began.elapsed().as_secs_f64())
    }

    /// Stops the programs and the servers.
    pub(crate) async fn stop(mut self) -> Result<()> {
        self.stop_programs().await?;
        if let Some(nats) = self.nats {
            nats.stop().await?;
        }
        self.postgres.stop().await
    }

    /// Returns the programs with their process ids.
    pub(crate) fn pids(&self) -> impl Iterator<Item = (&str, u32)> {
        self.programs.iter().filter_map(|program| Some((program.name.as_str(), program.pid()?)))
    }

    /// Returns the resident memory of each program, in MiB.
    fn memory(&self) -> Result<Vec<(String, f64)>> {
        let resident =
            |(name, pid): (&str, u32)| Ok((name.to_owned(), usage::memory(pid)?.resident));
        self.pids().map(resident).collect()
    }

    /// Returns the processor time of the programs, the servers and this client.
    pub(crate) fn times(&self) -> Times {
        let mut times = Times::new();
        for (name, pid) in self.pids() {
            *times.entry(name.to_owned()).or_default() += usage::ticks(pid);
        }
        times.insert("PostgreSQL".to_owned(), usage::ticks_with_children(self.postgres.pid()));
        times.insert("client".to_owned(), usage::ticks(std::process::id()));
        if let Some(nats) = &self.nats {
            times.insert("NATS".to_owned(), usage::ticks(nats.pid()));
        }
        times
    }

    /// Waits until the system rests: events are published and applied, tables are vacuumed.
    pub(crate) async fn rest(&self) {
        let began = Instant::now();
        let mut before = self.times();
        while began.elapsed() < LONGEST_REST {
            sleep(OBSERVATION).await;
            let now = self.times();
            let spent: f64 = usage::micros_since(&before, &now).values().sum();
            if spent / 1e6 < REST * OBSERVATION.as_secs_f64() {
                return;
            }
            before = now;
        }
        progress(format_args!("{} does not rest", self.shape.title()));
    }
}
