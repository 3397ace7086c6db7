//! Reports in memory.

use std::collections::BTreeSet;

use assay_proto::{Fault, TestResult, worst};

use super::{Amendment, Receiver};
use crate::{Attempt, Identities, Nature, Problem, Test, limits::MESSAGE, texts::beginning};

/// Tests of a report in memory, with the attempts of each together.
#[derive(Debug, Default)]
pub struct Collected {
    tests: Vec<Test>,
    /// Index of the collected test that each test of the report belongs to.
    places: Vec<usize>,
    identities: Identities,
}

impl Collected {
    /// Returns the tests.
    pub fn into_tests(self) -> Vec<Test> {
        self.tests
    }
}

impl Receiver for &mut Collected {
    fn test(&mut self, mut test: Test) -> Result<(), Fault> {
        let place = self.identities.place(&test, &test.identifier(), &test.variant());
        let Some(first) = place.attempt_of else {
            self.places.push(self.tests.len());
            self.tests.push(test);
            return Ok(());
        };
        let index = self.places[first];
        self.places.push(index);
        let joined = &mut self.tests[index];
        joined.attempts.iter_mut().for_each(Attempt::fail_unreported);
        (joined.start, joined.seconds) = (test.start, test.seconds);
        test.attempts.drain(..).for_each(|attempt| joined.push(attempt));
        Ok(())
    }

    fn amend(&mut self, first: usize, amendment: &Amendment) -> Result<(), Fault> {
        let places: BTreeSet<usize> = self.places[first..].iter().copied().collect();
        let tests = self.tests.iter_mut().enumerate();
        let amended = tests.filter(|(index, _)| places.contains(index));
        amendment.apply(amended.filter_map(|(_, test)| test.attempts.last_mut()));
        Ok(())
    }
}

impl Attempt {
    /// Ends what has no result: it did not finish.
    pub(super) fn end(&mut self) {
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
            self.result = worst(self.result, problem.nature.result());
            self.problems.push(problem.clone());
        }
    }

    /// Skips the attempt for a reason that its tool reports apart from it. Its own messages become a part of the reason.
    pub fn skip(&mut self, reason: &str) {
        if self.result == TestResult::Canceled && self.reason.starts_with(reason) {
            return;
        }
        let own = self.problems.drain(..).map(|problem| problem.message);
        let own = own.chain([std::mem::take(&mut self.reason)]);
        let texts = [reason.to_owned()].into_iter().chain(own).filter(|text| !text.is_empty());
        let texts: Vec<String> = texts.collect();
        self.reason = beginning(&texts.join("\n\n"), MESSAGE);
        self.result = TestResult::Canceled;
    }
}
