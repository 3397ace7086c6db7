//! Command-line options.

use std::{path::PathBuf, time::Duration};

use anyhow::{Context, Result};
use clap::{Parser, Subcommand, ValueEnum};

use crate::{
    monolith::{Monolith, line},
    row::Row,
    shape::Shape,
};

/// Measure Assay against a monolith that answers the same requests
///
/// Starts the monolith and Assay in the chosen shapes, each on a private PostgreSQL with the same
/// settings, and prints Markdown tables. A cell has the median of all rounds; then, if the monolith
/// has the same figure, the median of the ratios to it, each taken within one round; and the
/// smallest and largest value in brackets. For a short look at one change:
///
///     bench --rows read,list --shapes one --seconds 3 --rounds 3
#[derive(Parser)]
#[command(name = "bench", version, args_conflicts_with_subcommands = true, verbatim_doc_comment)]
pub(crate) struct Options {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
    /// Rows to measure, separated by commas; all but `growth` and `judgements` by default
    #[arg(long, value_enum, value_delimiter = ',')]
    rows: Vec<Row>,
    /// Shapes to measure, separated by commas; all but `line` by default
    #[arg(long, value_enum, value_delimiter = ',')]
    shapes: Vec<Shape>,
    /// Leave out the monolith, and with it the ratios
    #[arg(long)]
    no_baseline: bool,
    /// Number of rounds
    #[arg(long, default_value_t = 3)]
    pub(crate) rounds: usize,
    /// Duration of each load, in seconds
    #[arg(long, default_value_t = 10)]
    seconds: u64,
    /// Directory of the programs of Assay; that of this program by default
    #[arg(long)]
    programs: Option<PathBuf>,
    /// Directory in which databases are created; the system's directory for temporary files by
    /// default. A disk, since one in memory does not wait for commits
    #[arg(long)]
    data: Option<PathBuf>,
    /// Document to write the tables to, between its marks for them
    #[arg(long)]
    pub(crate) document: Option<PathBuf>,
    /// File for a profile of the programs by `perf record`
    #[arg(long)]
    pub(crate) perf: Option<PathBuf>,
}

#[derive(Clone, Subcommand)]
pub(crate) enum Command {
    /// Run the monolith
    #[command(hide = true)]
    Monolith(Monolith),
    /// Run the part of the line with PostgreSQL
    #[command(hide = true)]
    Store(line::Store),
    /// Run the part of the line with HTTP
    #[command(hide = true)]
    Front(line::Front),
}

impl Options {
    pub(crate) fn rows(&self) -> Vec<Row> {
        if self.rows.is_empty() {
            let by_default = |row: &Row| !matches!(row, Row::Growth | Row::Judgements);
            return Row::value_variants().iter().copied().filter(by_default).collect();
        }
        self.rows.clone()
    }

    /// Returns the shapes, the baseline first.
    pub(crate) fn shapes(&self) -> Vec<Shape> {
        let chosen = |shape: &Shape| match shape {
            Shape::Baseline => !self.no_baseline || self.shapes.contains(shape),
            Shape::Line => self.shapes.contains(shape),
            _ => self.shapes.is_empty() || self.shapes.contains(shape),
        };
        Shape::value_variants().iter().copied().filter(chosen).collect()
    }

    pub(crate) fn time(&self) -> Duration {
        Duration::from_secs(self.seconds)
    }

    pub(crate) fn programs(&self) -> Result<PathBuf> {
        if let Some(programs) = &self.programs {
            return Ok(programs.clone());
        }
        let own = std::env::current_exe()?;
        Ok(own.parent().context("this program has no directory")?.to_owned())
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.data.clone().unwrap_or_else(std::env::temp_dir)
    }
}
