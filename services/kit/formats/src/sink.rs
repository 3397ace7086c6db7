//! Passes on what readers find, and compares it with what the report says about itself.
//!
//! Tools crash, fail outside of tests and announce tests that never run. A report that says so is
//! never green: what it says becomes an entry beside its tests, with a name that is the same in every
//! run, so that its history works like that of a test.

use assay_proto::{Fault, TestResult};

use crate::{Nature, Problem, Test, decoded::Replaced, limits::MESSAGE, texts::beginning};

/// Maximum number of notes on a report.
const MOST_NOTES: usize = 20;

/// Name of the entry for what is not about a test or a suite.
pub(crate) const RUN: &str = "Test run";

/// Name of the entry for parts of a report that cannot be read.
const UNREADABLE: &str = "Unreadable part of the report";

/// Receives the contents of a report.
pub trait Receiver {
    /// Receives a test as soon as it is complete. The reader stops if it fails.
    fn test(&mut self, test: Test) -> Result<(), Fault>;

    /// Changes the tests from this one on, which were received before. Tests count from 0 in the report.
    fn amend(&mut self, first: usize, amendment: &Amendment) -> Result<(), Fault>;
}

/// What a tool writes behind the tests that it concerns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Amendment {
    /// The tests fail for this reason, such as the failure of the teardown of their suite.
    Failure(Problem),
    /// Output of the suite, which the first failed tests without an output get.
    Output(String),
}

/// Maximum number of tests that get the output of their suite.
const MOST_OUTPUTS: usize = 10;

impl Amendment {
    /// Changes the last attempts of tests, in their order.
    pub fn apply<'a>(&self, attempts: impl Iterator<Item = &'a mut crate::Attempt>) {
        match self {
            Self::Failure(problem) => attempts.for_each(|attempt| attempt.fail(problem)),
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

/// Numbers of tests that were passed on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    pub(crate) tests: usize,
    /// Tests with an attempt that failed.
    pub(crate) failed: usize,
    pub(crate) skipped: usize,
}

impl Tally {
    /// Returns the numbers since an earlier state.
    pub(crate) fn since(self, earlier: Self) -> Self {
        Self {
            tests: self.tests - earlier.tests,
            failed: self.failed - earlier.failed,
            skipped: self.skipped - earlier.skipped,
        }
    }

    /// Adds the numbers of a part.
    pub(crate) fn add(&mut self, part: Self) {
        self.tests += part.tests;
        self.failed += part.failed;
        self.skipped += part.skipped;
    }
}

/// Numbers that a report, or a suite in it, states about itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Claims {
    pub(crate) tests: Option<usize>,
    /// Failures and errors.
    pub(crate) failures: Option<usize>,
    /// Skipped tests, which some tools count and do not list.
    pub(crate) skipped: Option<usize>,
}

impl Claims {
    /// Adds failures of one kind, if their number is known.
    pub(crate) fn add_failures(&mut self, text: &str) {
        if let Some(failures) = count(text) {
            self.failures = Some(self.failures.unwrap_or_default().saturating_add(failures));
        }
    }
}

/// Parses a number of tests. Anything else is unknown.
pub(crate) fn count(text: &str) -> Option<usize> {
    text.trim().parse().ok()
}

/// What a reader passes tests and notes to.
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
        found: Tally,
        claims: Claims,
        owner: &Test,
    ) -> Result<Tally, Fault> {
        let failures = claims.failures.unwrap_or_default();
        let missing = claims.tests.unwrap_or_default().saturating_sub(found.tests);
        let skipped = claims.skipped.unwrap_or_default().saturating_sub(found.skipped);
        if missing > 0 && missing <= skipped {
            self.note(format!("{missing} skipped tests are counted, but not listed."));
            let (tests, skipped) = (found.tests + missing, found.skipped + missing);
            return Ok(Tally { tests, skipped, ..found });
        }
        let mut entry = |nature, message| {
            self.add_own(owner.clone(), Problem { nature, message, ..Problem::default() })
        };
        if missing > 0 {
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

/// The output of a reader for a receiver.
pub(crate) struct Passed<R> {
    receiver: R,
    tally: Tally,
    notes: Vec<String>,
    lost: Vec<String>,
    replaced: Replaced,
}

impl<R: Receiver> Passed<R> {
    pub(crate) fn to(receiver: R) -> Self {
        let (tally, notes, lost, replaced) = Default::default();
        Self { receiver, tally, notes, lost, replaced }
    }

    /// Passes on what concerns the whole report. Returns the notes on it.
    pub(crate) fn finish(mut self) -> Result<Vec<String>, Fault> {
        if !self.lost.is_empty() {
            let owner = Test { name: UNREADABLE.to_owned(), ..Test::default() };
            let message = beginning(&self.lost.join("\n"), MESSAGE);
            let problem = Problem { nature: Nature::Error, message, ..Problem::default() };
            <dyn Output>::add_own(&mut self, owner, problem)?;
        }
        match self.replaced.count() {
            0 => {}
            1 => self.note("1 character is not valid text and was replaced by U+FFFD.".to_owned()),
            count => self.note(format!(
                "{count} characters are not valid text and were replaced by U+FFFD."
            )),
        }
        Ok(self.notes)
    }
}

impl<R: Receiver> Output for Passed<R> {
    fn add(&mut self, mut test: Test) -> Result<(), Fault> {
        test.attempts.iter_mut().for_each(crate::Attempt::end);
        self.tally.tests += 1;
        let has_failed = |attempt: &crate::Attempt| {
            Nature::of(attempt.result).is_some() || !attempt.problems.is_empty()
        };
        self.tally.failed += usize::from(test.attempts.iter().any(has_failed));
        self.tally.skipped += usize::from(test.result() == TestResult::Canceled);
        self.receiver.test(test)
    }

    fn amend(&mut self, first: usize, amendment: Amendment) -> Result<(), Fault> {
        if matches!(amendment, Amendment::Failure(_)) {
            self.tally.failed = self.tally.failed.max(self.tally.tests - first);
        }
        self.receiver.amend(first, &amendment)
    }

    fn note(&mut self, note: String) {
        if self.notes.len() < MOST_NOTES {
            self.notes.push(beginning(&note, MESSAGE));
        }
    }

    fn lose(&mut self, place: &str, problem: &str) {
        if self.lost.len() < MOST_NOTES {
            self.lost.push(format!("{place}: {problem}"));
        }
    }

    fn tally(&self) -> Tally {
        self.tally
    }

    fn replaced(&self) -> Replaced {
        self.replaced.clone()
    }
}

/// Tests of a report in memory, with the attempts of each together.
#[derive(Debug, Default)]
pub struct Collected {
    tests: Vec<Test>,
    /// Index of the collected test that each test of the report belongs to.
    places: Vec<usize>,
    identities: crate::Identities,
}

impl Collected {
    /// Returns the tests.
    pub fn into_tests(self) -> Vec<Test> {
        self.tests
    }
}

impl Receiver for &mut Collected {
    fn test(&mut self, mut test: Test) -> Result<(), Fault> {
        let place = self.identities.place(&test);
        let Some(first) = place.attempt_of else {
            self.places.push(self.tests.len());
            self.tests.push(test);
            return Ok(());
        };
        let index = self.places[first];
        self.places.push(index);
        let joined = &mut self.tests[index];
        joined.attempts.iter_mut().for_each(crate::Attempt::fail_unreported);
        (joined.start, joined.seconds) = (test.start, test.seconds);
        test.attempts.drain(..).for_each(|attempt| joined.push(attempt));
        Ok(())
    }

    fn amend(&mut self, first: usize, amendment: &Amendment) -> Result<(), Fault> {
        let places: std::collections::BTreeSet<usize> =
            self.places[first..].iter().copied().collect();
        let tests = self.tests.iter_mut().enumerate();
        let amended = tests.filter(|(index, _)| places.contains(index));
        amendment.apply(amended.filter_map(|(_, test)| test.attempts.last_mut()));
        Ok(())
    }
}

impl crate::Attempt {
    /// Ends what has no result: it did not finish.
    fn end(&mut self) {
        if self.result == TestResult::Unspecified {
            self.result = TestResult::Aborted;
        }
        for step in &mut self.steps {
            if step.result == TestResult::Unspecified {
                step.result = TestResult::NotExecuted;
            }
        }
        if self.result == TestResult::Aborted && self.problems.is_empty() {
            let message = "The test did not finish.".to_owned();
            let nature = Nature::Abortion;
            self.problems.push(Problem { nature, message, ..Problem::default() });
        }
    }

    /// Lets the attempt fail for a reason that its tool reports apart from it, unless it was skipped.
    pub fn fail(&mut self, problem: &Problem) {
        if self.result != TestResult::Canceled && !self.problems.contains(problem) {
            self.result = assay_proto::worst(self.result, problem.nature.result());
            self.problems.push(problem.clone());
        }
    }
}
