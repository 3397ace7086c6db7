//! Passes on what readers find, and compares it with what the report says about itself.
//!
//! Tools crash, fail outside of tests and announce tests that never run. A report that says so is
//! never green: what it says becomes an entry beside its tests, with a name that is the same in every
//! run, so that its history works like that of a test.

mod claims;
mod collected;
mod passed;

use assay_proto::Fault;

use crate::{Nature, Problem, Test, decoded::Replaced, limits::MESSAGE, texts::beginning};

pub use self::collected::Collected;
pub(crate) use self::{
    claims::{Claims, Tally, count},
    passed::Passed,
};

/// Name of the entry for what is not about a test or a suite.
pub(crate) const RUN: &str = "Test run";

/// Receives the contents of a report.
pub trait Receiver {
    /// Receives a test as soon as it is complete. The reader stops if it fails.
    fn test(&mut self, test: Test) -> Result<(), Fault>;

    /// Changes the tests from this one on, which were received before. Tests count from 0 in the report.
    fn amend(&mut self, first: usize, amendment: &Amendment) -> Result<(), Fault>;
}

/// Part of a report that a tool writes behind the tests that it concerns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Amendment {
    /// The tests fail for this reason, such as the failure of the teardown of their suite.
    Failure(Problem),
    /// The tests count as skipped for this reason, whatever their results were.
    Skip(String),
    /// Output of the suite, which the first failed tests without an output get.
    Output(String),
}

/// Maximum number of tests that get the output of their suite.
pub const MOST_OUTPUTS: usize = 10;

impl Amendment {
    /// Changes the last attempts of tests, in their order.
    pub fn apply<'a>(&self, attempts: impl Iterator<Item = &'a mut crate::Attempt>) {
        match self {
            Self::Failure(problem) => attempts.for_each(|attempt| attempt.fail(problem)),
            Self::Skip(reason) => attempts.for_each(|attempt| attempt.skip(reason)),
            Self::Output(output) => attempts
                .filter(|attempt| {
                    Nature::of(attempt.result).is_some() && attempt.output.trim().is_empty()
                })
                .take(MOST_OUTPUTS)
                .for_each(|attempt| attempt.output.clone_from(output)),
        }
    }
}

/// Receives tests without amendments.
impl<F: FnMut(Test) -> Result<(), Fault>> Receiver for F {
    fn test(&mut self, test: Test) -> Result<(), Fault> {
        self(test)
    }

    fn amend(&mut self, _: usize, _: &Amendment) -> Result<(), Fault> {
        Ok(())
    }
}

/// Output of a reader, which receives tests and notes.
pub trait Output {
    /// Passes on a test.
    fn add(&mut self, test: Test) -> Result<(), Fault>;

    /// Changes the tests from this one on, which were passed on before.
    fn amend(&mut self, first: usize, amendment: Amendment) -> Result<(), Fault>;

    /// Adds a note on the report as a whole, for its readers.
    fn note(&mut self, note: String);

    /// Leaves out a part of the report that cannot be read.
    fn lose(&mut self, place: &str, problem: &str);

    /// Returns the number of tests so far.
    fn tally(&self) -> Tally;

    /// Returns the number of characters that were replaced, which readers increase.
    fn replaced(&self) -> Replaced;
}

/// The output of a reader.
pub type Sink<'s> = &'s mut (dyn Output + 's);

impl Test {
    /// Returns the entry with the name of its innermost suite, or of the run, if it has none.
    pub(crate) fn named_by_suite(mut self) -> Self {
        if !self.name.is_empty() {
            return self;
        }
        match self.suites.pop() {
            Some(name) => Self { name, ..self },
            None => self.of_run(),
        }
    }

    /// Returns the entry of the whole run instead of one without a name.
    pub(crate) fn of_run(self) -> Self {
        Self { name: RUN.to_owned(), ..self }
    }
}

impl dyn Output + '_ {
    /// Passes on the failure of a suite, a hook or a run.
    pub(crate) fn add_own(&mut self, owner: Test, problem: Problem) -> Result<(), Fault> {
        self.add(Test { attempts: vec![crate::Attempt::with(vec![problem])], ..owner })
    }

    /// Passes on the failure of the whole run.
    pub(crate) fn fail_run(&mut self, nature: Nature, message: &str) -> Result<(), Fault> {
        let owner = Test::default().of_run();
        let message = beginning(message, MESSAGE);
        self.add_own(owner, Problem { nature, message, ..Problem::default() })
    }

    /// Compares what a suite or run claims with what was found. A contradiction becomes an entry of its
    /// owner. Returns what was found with this entry.
    pub(crate) fn compare(
        &mut self,
        mut found: Tally,
        claims: Claims,
        owner: &Test,
    ) -> Result<Tally, Fault> {
        let failures = claims.failures.unwrap_or_default();
        let missing = claims.tests.unwrap_or_default().saturating_sub(found.tests);
        let skipped = claims.skipped.unwrap_or_default().saturating_sub(found.skipped);
        let is_skipped = missing > 0 && missing <= skipped;
        if is_skipped {
            self.note(format!("{missing} skipped tests are counted, but not listed."));
            found.tests += missing;
            found.skipped += missing;
        }
        let mut entry = |nature, message| {
            self.add_own(owner.clone(), Problem { nature, message, ..Problem::default() })
        };
        if missing > 0 && !is_skipped {
            let announced = found.tests + missing;
            let message = format!(
                "{missing} of {announced} tests are missing: the report announces {announced} and \
                 has {}.",
                found.tests
            );
            entry(Nature::Abortion, message)?;
            return Ok(Tally { tests: announced, failed: found.failed + 1, ..found });
        }
        if failures > 0 && found.failed == 0 {
            let message =
                format!("The report counts {failures} failed tests, but none of its tests failed.");
            entry(Nature::Error, message)?;
            return Ok(Tally { failed: 1, ..found });
        }
        Ok(found)
    }
}
