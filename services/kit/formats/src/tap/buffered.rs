//! Subtests whose line is in front of their tests, which are in brackets, as Test2 of Perl and node-tap write
//! them. The bracket is at the end of the line, or in a line of its own behind the YAML block.

use assay_proto::Fault;

use super::{Report, point::Point};
use crate::{Test, names::shortened};

/// A subtest whose tests follow.
pub(super) struct Buffered {
    level: usize,
    point: Point,
    /// The test that it is if it fails by itself, with its description.
    test: Option<Test>,
}

impl Report<'_> {
    /// Opens a subtest whose line ends with a bracket.
    pub(super) fn open(&mut self, level: usize, point: Point, test: Option<Test>) {
        self.titles.resize(level, String::new());
        self.titles.push(shortened(point.name()));
        self.levels.truncate(level + 1);
        self.buffered.push(Buffered { level, point, test });
    }

    /// Opens the last test, which is a subtest. Returns whether it is one at this level.
    pub(super) fn open_last(&mut self, level: usize) -> bool {
        let Some((_, point)) = self.point.take_if(|(of, _)| *of == level) else { return false };
        let test = self.last.take();
        // It counts when it is closed.
        let level_of_test = self.level(level);
        level_of_test.count = level_of_test.count.saturating_sub(1);
        self.open(level, point, test);
        true
    }

    /// Closes the subtests at this level and below it.
    pub(super) fn close(&mut self, level: usize) -> Result<(), Fault> {
        while let Some(Buffered { level, mut point, test }) =
            self.buffered.pop_if(|buffered| buffered.level >= level)
        {
            self.flush()?;
            self.point = None;
            let within = self.levels.get(level + 1);
            if within.is_none_or(|within| within.count == 0 && within.plan.is_none()) {
                point.keep_bracket();
                self.titles.truncate(level);
            }
            self.add_point(&point, level)?;
            // The test has what describes it, unless it is only a suite.
            self.last = self.last.take().map(|last| test.unwrap_or(last));
        }
        Ok(())
    }
}
