//! The facts of an execution that a document shows.

use crate::{block::Tone, picture::Picture};

/// An execution. Its texts have passed an [`Allowance`](crate::Allowance), so that they are bounded and clean.
#[derive(Debug, Default)]
pub struct Report {
    pub project: String,
    pub test_set: String,
    pub verdict: Verdict,
    /// Result of the execution, or its status while it runs.
    pub result: Outcome,
    /// Outcome of each rule of the verdict.
    pub rules: Vec<Rule>,
    /// Time of the request as year, month, day, hour, minute and second in UTC.
    pub request_time: [u16; 6],
    /// Empty if it is not known.
    pub duration: String,
    pub requested_by: String,
    /// Empty if it is not known, as the next ones are.
    pub branch: String,
    pub commit: String,
    pub build: String,
    pub environment: String,
    pub subject: String,
    pub tags: String,
    /// Link to the page of the execution; empty if the console is not served.
    pub url: String,
    pub counts: Counts,
    pub changes: Changes,
    pub causes: Listed<Cause>,
    /// The tests, those that fail first.
    pub tests: Listed<Test>,
    pub failures: Listed<Failure>,
    /// Remarks on the execution, and on the document.
    pub notes: Vec<String>,
}

impl Report {
    /// Returns the time of the request, such as `2026-03-02 09:30:04 UTC`.
    pub(crate) fn requested(&self) -> String {
        let [year, month, day, hour, minute, second] = self.request_time;
        format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02} UTC")
    }
}

/// The first entries of a list, and the number of the others.
#[derive(Debug)]
pub struct Listed<T> {
    pub items: Vec<T>,
    pub left_out: usize,
}

impl<T> Default for Listed<T> {
    fn default() -> Self {
        Self { items: Vec::new(), left_out: 0 }
    }
}

/// Whether an execution meets the rules of its test set.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Verdict {
    #[default]
    Pending,
    Passed,
    Failed,
}

impl Verdict {
    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::Pending => "Pending",
            Self::Passed => "Passed",
            Self::Failed => "Failed",
        }
    }

    pub(crate) fn tone(self) -> Tone {
        match self {
            Self::Pending => Tone::Warn,
            Self::Passed => Tone::Pass,
            Self::Failed => Tone::Fail,
        }
    }
}

/// A result in the words of readers.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    pub label: String,
    pub tone: Tone,
}

/// A rule of a verdict.
#[derive(Debug)]
pub struct Rule {
    pub name: String,
    pub is_met: bool,
    /// Numbers that were found and that are allowed.
    pub message: String,
}

/// Numbers of test cases by their results.
#[derive(Debug, Default)]
pub struct Counts {
    pub total: i32,
    pub passed: i32,
    pub failed: i32,
    pub errors: i32,
    pub aborted: i32,
    pub canceled: i32,
    pub pending: i32,
}

/// Numbers of test cases by their changes.
#[derive(Debug, Default)]
pub struct Changes {
    pub new: i32,
    pub cause_changed: i32,
    pub still: i32,
    pub fixed: i32,
    pub flaky: i32,
    /// Known failures.
    pub muted: i32,
}

/// Failures that have the same cause.
#[derive(Debug)]
pub struct Cause {
    /// Message in a few lines; empty if there is none.
    pub headline: String,
    /// Number of test cases.
    pub count: i32,
    /// Names of some of the test cases.
    pub tests: Vec<String>,
}

/// A test case of the execution.
#[derive(Clone, Debug)]
pub struct Test {
    pub name: String,
    pub identifier: String,
    pub result: Outcome,
    /// How the result differs from earlier ones, such as `new` or `flaky, known`; empty if it does not.
    pub change: String,
    pub duration: String,
    /// Message of the failure in a few lines; empty if there is none.
    pub headline: String,
}

/// A test case that fails, with its steps.
#[derive(Debug)]
pub struct Failure {
    pub test: Test,
    pub ticket: String,
    pub comment: String,
    /// Parameters of the instance, and which attempt it was; empty if there is nothing to say.
    pub instance: String,
    pub steps: Listed<Step>,
}

/// A step of a test.
#[derive(Debug)]
pub struct Step {
    pub number: i32,
    pub result: Outcome,
    /// Empty if it did not run.
    pub duration: String,
    pub input: String,
    pub expected: String,
    pub actual: String,
    /// Messages of checks that failed without failing the step.
    pub checks: Vec<String>,
    pub pictures: Vec<Picture>,
    /// Names of the pictures that are left out, each with the reason.
    pub left_out: Vec<String>,
}
