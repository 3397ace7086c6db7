//! Files, of which one input can have several, and the plans of their tests.

use assay_proto::{Fault, TestResult};

use super::{Level, Report};
use crate::{Attempt, Nature, Test};

/// Name of the tests of a file that skips all of them.
const ALL: &str = "All tests";

impl Report<'_> {
    /// Adds the plan of a level. One of no tests skips all of them.
    pub(super) fn add_plan(
        &mut self,
        level: usize,
        tests: usize,
        reason: Option<&str>,
    ) -> Result<(), Fault> {
        let known = *self.level(level);
        if level == 0 && known.plan.is_some() {
            self.end_planned(known)?;
        }
        let planned = self.level(level);
        (planned.plan, planned.before_plan) = (Some(tests), planned.count);
        if tests > 0 || level > 0 {
            return Ok(());
        }
        self.flush()?;
        let reason = reason.unwrap_or_default().to_owned();
        let attempts = vec![Attempt { result: TestResult::Canceled, reason, ..Attempt::default() }];
        self.sink.add(Test { name: ALL.to_owned(), attempts, ..Test::default() })
    }

    /// Ends a file that another plan follows, which is of another file without a version. If the plan of the first
    /// one is at its end, the tests since then are of the other one.
    fn end_planned(&mut self, file: Level) -> Result<(), Fault> {
        if file.before_plan == 0 {
            return self.begin_file();
        }
        self.flush()?;
        // Which of the numbers are those of the first file is not known.
        let numbers = None;
        self.compare(Level { count: file.before_plan, numbers, ..file })?;
        let count = file.count.saturating_sub(file.before_plan);
        *self.level(0) = Level { count, numbers, ..file };
        Ok(())
    }

    /// Ends the file in front of this line, if there is one.
    pub(super) fn begin_file(&mut self) -> Result<(), Fault> {
        if self.has_version || !self.levels.is_empty() || !self.buffered.is_empty() {
            self.end_file()?;
        }
        (self.titles, self.levels, self.point) = (Vec::new(), Vec::new(), None);
        (self.has_version, self.has_stopped) = (false, false);
        Ok(())
    }

    /// Compares the tests of a file with its plan.
    pub(super) fn end_file(&mut self) -> Result<(), Fault> {
        self.flush()?;
        self.close(0)?;
        self.flush()?;
        self.compare(self.levels.first().copied().unwrap_or_default())
    }

    fn compare(&mut self, all: Level) -> Result<(), Fault> {
        if self.has_stopped {
            return Ok(());
        }
        let Some(plan) = all.plan else {
            let message = "The plan is missing: the program ended before it had run all tests.";
            return self.sink.fail_run(Nature::Abortion, message);
        };
        if all.count > plan {
            let message = format!("The plan announces {plan} tests, but {} were run.", all.count);
            return self.sink.fail_run(Nature::Error, &message);
        }
        // Numbers within the plan may come twice: the runner of Node restarts them for files.
        if let Some((first, last)) = all.numbers
            && (first == 0 || last > plan)
        {
            let number = if first == 0 { first } else { last };
            let message = format!("The plan is 1..{plan}, but a test has the number {number}.");
            return self.sink.fail_run(Nature::Error, &message);
        }
        let (found, claims) = all.compared();
        self.sink.compare(found, claims, &Test::default().of_run()).map(drop)
    }
}
