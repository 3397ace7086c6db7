//! The output that passes tests on to a receiver.

use assay_proto::{Fault, TestResult};

use super::{Amendment, Output, Receiver, Tally};
use crate::{Attempt, Nature, Problem, Test, decoded::Replaced, limits::MESSAGE, texts::beginning};

/// Maximum number of notes on a report.
const MOST_NOTES: usize = 20;

/// Name of the entry for parts of a report that cannot be read.
const UNREADABLE: &str = "Unreadable part of the report";

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
        test.attempts.iter_mut().for_each(Attempt::end);
        self.tally.tests += 1;
        let has_failed = |attempt: &Attempt| {
            Nature::of(attempt.result).is_some() || !attempt.problems.is_empty()
        };
        self.tally.failed += usize::from(test.attempts.iter().any(has_failed));
        self.tally.red += usize::from(Nature::of(test.result()).is_some());
        self.tally.skipped += usize::from(test.result() == TestResult::Canceled);
        self.receiver.test(test)
    }

    fn amend(&mut self, first: usize, amendment: Amendment) -> Result<(), Fault> {
        if matches!(amendment, Amendment::Failure(_)) {
            let failed = self.tally.tests - first;
            self.tally.failed = self.tally.failed.max(failed);
            self.tally.red = self.tally.red.max(failed);
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
