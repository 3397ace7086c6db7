//! Parses test reports in JUnit XML, in every dialect in common use.
//!
//! The format has no standard. Tools agree on the elements `testsuite` and `testcase`, but
//! attributes are often missing or unusual, so the parser ignores what it does not recognize. It
//! rejects files that are not reports or are hostile: declared entities, deep nesting, endless
//! input.

mod reader;
mod steps;
#[cfg(test)]
mod tests;
mod values;

use assay_proto::{TestResult, Timestamp, worst};

pub use self::reader::read;

/// Type of an error that marks an aborted test, in reports that Assay exports.
pub const ABORTED: &str = "assay.Aborted";

/// Heading of the output of a test in the text of its last step.
pub const OUTPUT: &str = "Output:\n";

/// A test as reported by a tool.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Test {
    /// Names of the enclosing suites, outermost first.
    pub suites: Vec<String>,
    /// Attribute `classname`.
    pub class: String,
    pub name: String,
    /// Start time of the test, or of its suite.
    pub start: Option<Timestamp>,
    /// Duration in seconds.
    pub seconds: f64,
    /// Reason why the test was skipped, if it was.
    pub skipped: Option<String>,
    /// Problems in the order of the file.
    pub problems: Vec<Problem>,
    /// End of the output.
    pub output: String,
}

/// A failure, error or abortion of a test.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Problem {
    pub kind: Kind,
    pub message: String,
    pub text: String,
    /// Duration of the attempt, in seconds.
    pub seconds: Option<f64>,
}

/// Meaning of a problem for its test.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kind {
    pub nature: Nature,
    pub attempt: Attempt,
}

/// Nature of a problem.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Nature {
    /// The test failed.
    #[default]
    Failure,
    /// Something else prevented the test.
    Error,
    /// The test did not finish.
    Abortion,
}

/// Attempt in which a problem occurred, for tools that retry failed tests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Attempt {
    /// The attempt that determines the result.
    #[default]
    Decisive,
    /// A further attempt of a test that failed every time.
    Repeated,
    /// An attempt of a test that passed in a later one.
    Flaky,
}

impl Kind {
    /// Returns the result of a test with such a problem.
    pub fn result(self) -> TestResult {
        match self.nature {
            Nature::Failure => TestResult::Failed,
            Nature::Error => TestResult::Error,
            Nature::Abortion => TestResult::Aborted,
        }
    }
}

impl Test {
    /// Returns the result of the test. A skipped test is `Canceled`.
    pub fn result(&self) -> TestResult {
        let counts = |problem: &&Problem| problem.kind.attempt != Attempt::Flaky;
        let results = self.problems.iter().filter(counts).map(|problem| problem.kind.result());
        results.reduce(worst).unwrap_or(match self.skipped {
            Some(_) => TestResult::Canceled,
            None => TestResult::Passed,
        })
    }

    /// Returns the suites, class and name, without empty and repeated parts.
    pub fn path(&self) -> Vec<&str> {
        let mut path: Vec<&str> = self.suites.iter().map(String::as_str).collect();
        path.extend([self.class.as_str(), self.name.as_str()]);
        path.retain(|part| !part.is_empty());
        path.dedup();
        path
    }

    /// Returns the identifier of the test, which is the same in every run: its class and name.
    pub fn identifier(&self) -> String {
        match (self.class.is_empty(), self.name.is_empty()) {
            (true, true) => "unnamed".to_owned(),
            (true, false) => values::shortened(&self.name),
            (false, true) => values::shortened(&self.class),
            (false, false) => values::shortened(&format!("{}.{}", self.class, self.name)),
        }
    }

    /// Returns the name of the test for the catalog.
    pub fn title(&self) -> String {
        if self.name.is_empty() { self.identifier() } else { values::shortened(&self.name) }
    }
}
