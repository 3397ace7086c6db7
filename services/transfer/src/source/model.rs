//! Test cases, runs and results, as the files of all tools have them.

use std::path::PathBuf;

use chrono::{DateTime, Utc};

use crate::folder::Name;

/// A test case.
#[derive(Debug, Default)]
pub(super) struct Case {
    pub(super) identifier: String,
    pub(super) name: String,
    pub(super) description: String,
    pub(super) steps: Vec<Step>,
    pub(super) archived: bool,
}

/// A step of a test case.
#[derive(Debug, Default)]
pub(super) struct Step {
    pub(super) input: String,
    pub(super) expected: String,
    pub(super) comment: String,
}

/// Reasons why runs are left out.
pub(super) const NOT_ENDED: &str = "have not ended";
pub(super) const NOT_BEGUN: &str = "have not begun and have no results";
pub(super) const OF_DEBUGGING: &str = "are in mode DEBUG";

/// A run of tests.
#[derive(Debug, Default)]
pub(super) struct Run {
    /// Identity of the run within its tool.
    pub(super) key: String,
    /// Name of the test set.
    pub(super) set: String,
    pub(super) start: Option<DateTime<Utc>>,
    pub(super) end: Option<DateTime<Utc>>,
    /// Tags, separated by commas.
    pub(super) tags: String,
    pub(super) build: Option<String>,
    pub(super) url: Option<String>,
    /// Why the run is left out. None if it is imported.
    pub(super) left_out: Option<&'static str>,
}

impl Run {
    /// Adds what another record says about the same run.
    pub(super) fn add(&mut self, other: Self) {
        let Self { key: _, set, start, end, tags, build, url, left_out } = other;
        if !set.is_empty() {
            self.set = set;
        }
        if !tags.is_empty() {
            self.tags = tags;
        }
        self.start = start.or(self.start);
        self.end = end.or(self.end);
        self.build = build.or(self.build.take());
        self.url = url.or(self.url.take());
        self.left_out = left_out.or(self.left_out);
    }
}

/// A result of a test case in a run.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    pub(super) identifier: String,
    /// Name of a test case that is only known by its results.
    pub(super) name: String,
    pub(super) verdict: Verdict,
    pub(super) start: Option<DateTime<Utc>>,
    pub(super) end: Option<DateTime<Utc>>,
    pub(super) seconds: Option<f64>,
    /// Parameters, if the case was executed with several.
    pub(super) variant: String,
    /// Whether the result is another attempt at the previous one of the same case and parameters.
    /// Otherwise, it is an instance of its own.
    pub(super) is_retry: bool,
    pub(super) steps: Vec<StepOutcome>,
    pub(super) comment: String,
    pub(super) ticket: String,
    pub(super) files: Vec<Attachment>,
}

/// A file of a result.
#[derive(Debug)]
pub(super) struct Attachment {
    /// The folder of the file, and its name there.
    pub(super) folder: PathBuf,
    pub(super) source: Name,
    /// Name within its run.
    pub(super) name: Name,
    pub(super) content_type: String,
}

/// The result of a step.
#[derive(Debug, Default)]
pub(super) struct StepOutcome {
    pub(super) input: String,
    pub(super) expected: String,
    pub(super) actual: String,
    pub(super) verdict: Verdict,
}

/// Result of a test, as Assay names it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) enum Verdict {
    /// No result, which is not imported.
    #[default]
    None,
    Passed,
    Failed,
    Error,
    Aborted,
    Canceled,
    /// A status that only the other tool knows.
    Unknown(String),
}

impl Verdict {
    /// Returns the name in the interface.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::None => "NotExecuted",
            Self::Passed => "Passed",
            Self::Failed => "Failed",
            Self::Error => "Error",
            Self::Aborted => "Aborted",
            Self::Canceled | Self::Unknown(_) => "Canceled",
        }
    }
}
