//! Measures Assay against a monolith that answers the same requests, and prints tables.
//!
//! `make bench` builds all programs and runs this one.

#![expect(clippy::cast_precision_loss, reason = "counts are far below 2^53")]

mod client;
mod document;
mod fixture;
mod likeness;
mod load;
mod monolith;
mod options;
mod perf;
mod program;
mod progress;
mod report;
mod row;
mod rows;
mod shape;
mod system;
mod usage;

use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;

use crate::{
    options::{Command, Options},
    perf::Recording,
    progress::progress,
    report::{Figure, Report, Section, Unit},
    rows::Measurement,
    system::{Launch, System},
};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let options = Options::parse();
    let done = match options.command.clone() {
        Some(Command::Monolith(monolith)) => monolith.run(),
        Some(Command::Store(store)) => store.run(),
        Some(Command::Front(front)) => front.run(),
        None => run(&options),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Measures on one thread, which leaves the other processors to the systems.
fn run(options: &Options) -> Result<()> {
    let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    tokio.block_on(async {
        let mut report = Report::default();
        let mut systems = start(options, &mut report).await?;
        let measured = measure(options, &mut systems, &mut report).await;
        for system in systems {
            system.stop().await?;
        }
        measured?;
        let tables = report.tables();
        print!("{tables}");
        options.document.as_ref().map_or(Ok(()), |file| document::insert(file, &tables))
    })
}

async fn start(options: &Options, report: &mut Report) -> Result<Vec<System>> {
    let launch = Launch { programs: options.programs()?, data: options.data() };
    let mut systems = Vec::new();
    for shape in options.shapes() {
        progress(format_args!("{}: start and preparation", shape.title()));
        let system = launch.start(shape, &options.rows()).await?;
        if shape.is_assay() {
            let name = "start to ready, empty databases";
            let figure = Figure::new(Section::Batches, name, Unit::Seconds);
            report.add(figure, shape, 0, system.first_start);
        }
        for (program, resident) in &system.idle {
            let figure = Figure::new(Section::Memory, &format!("{program}, idle"), Unit::Mebibytes);
            report.add(figure.with_goal("25 MiB"), shape, 0, *resident);
        }
        systems.push(system);
    }
    likeness::check(&systems).await?;
    Ok(systems)
}

/// Measures each row in each system before the next row, so that both have the same neighbours.
async fn measure(options: &Options, systems: &mut [System], report: &mut Report) -> Result<()> {
    for round in 0..options.rounds {
        for row in options.rows() {
            for system in systems.iter_mut().filter(|system| row.is_in(system.shape)) {
                let title = system.shape.title();
                progress(format_args!("round {}: {row:?}, {title}", round + 1));
                let pids: Vec<u32> = system.pids().map(|(_, pid)| pid).collect();
                let recording = match &options.perf {
                    Some(file) => Some(Recording::start(file, &pids)?),
                    None => None,
                };
                let time = options.time();
                row.measure(&mut Measurement { system, report, time, round }).await?;
                if let Some(recording) = recording {
                    recording.stop().await?;
                }
            }
        }
    }
    Ok(())
}
