//! Reads the reports of test tools in JUnit XML, in every dialect in common use.
//!
//! There is no standard. Tools agree on `testsuite` and `testcase` elements, attributes are often
//! missing or written in surprising ways, and what is not understood is better passed over than
//! refused. What is refused is what is no report, or is made to hurt: entities that are declared,
//! elements that are nested deep, tests without end.

mod reader;
mod steps;
#[cfg(test)]
mod tests;
mod values;

use assay_proto::{TestResult, Timestamp, worst};

pub use self::reader::read;

/// The type of an error that says that the test was aborted: how Assay itself writes that down.
pub const ABORTED: &str = "assay.Aborted";

/// What stands before the output of a test that did not just pass, in the text of its last step.
pub const OUTPUT: &str = "Output:\n";

/// A test as a tool reports it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Test {
    /// The names of the suites around it, from the outermost.
    pub suites: Vec<String>,
    pub class: String,
    pub name: String,
    /// When it began, or its suite.
    pub start: Option<Timestamp>,
    pub seconds: f64,
    /// Why it was not executed, if it was not.
    pub skipped: Option<String>,
    /// What went wrong, in the order of the file.
    pub problems: Vec<Problem>,
    /// The end of what it wrote.
    pub output: String,
}

/// Something that went wrong in a test.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Problem {
    pub kind: Kind,
    pub message: String,
    pub text: String,
    pub seconds: Option<f64>,
}

/// What a problem means for its test.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kind {
    /// Whether the test failed, or something else kept it from its work.
    pub nature: Nature,
    /// Which of several attempts it was that failed.
    pub attempt: Attempt,
}

/// What went wrong.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Nature {
    #[default]
    Failure,
    Error,
    Abortion,
}

/// Tools may try a failed test again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Attempt {
    /// The one that counts.
    #[default]
    Decisive,
    /// Another one of a test that failed every time.
    Repeated,
    /// An earlier one of a test that passed in the end.
    Flaky,
}

impl Kind {
    pub fn result(self) -> TestResult {
        match self.nature {
            Nature::Failure => TestResult::Failed,
            Nature::Error => TestResult::Error,
            Nature::Abortion => TestResult::Aborted,
        }
    }
}

impl Test {
    /// How the test ended: what was skipped was Canceled.
    pub fn result(&self) -> TestResult {
        let counts = |problem: &&Problem| problem.kind.attempt != Attempt::Flaky;
        let results = self.problems.iter().filter(counts).map(|problem| problem.kind.result());
        results.reduce(worst).unwrap_or(match self.skipped {
            Some(_) => TestResult::Canceled,
            None => TestResult::Passed,
        })
    }

    /// Its suites, class and name, as far as they say anything new.
    pub fn path(&self) -> Vec<&str> {
        let mut path: Vec<&str> = self.suites.iter().map(String::as_str).collect();
        path.extend([self.class.as_str(), self.name.as_str()]);
        path.retain(|part| !part.is_empty());
        path.dedup();
        path
    }

    /// What names the test from one run to the next: its class and name.
    pub fn identifier(&self) -> String {
        match (self.class.is_empty(), self.name.is_empty()) {
            (true, true) => "unnamed".to_owned(),
            (true, false) => values::shortened(&self.name),
            (false, true) => values::shortened(&self.class),
            (false, false) => values::shortened(&format!("{}.{}", self.class, self.name)),
        }
    }

    /// What the test is called in the catalog.
    pub fn title(&self) -> String {
        if self.name.is_empty() { self.identifier() } else { values::shortened(&self.name) }
    }
}
