//! TAP, the Test Anything Protocol, versions 12 to 14, with subtests and YAML blocks.
//!
//! A file, and each subtest in it, has a plan: the number of its tests. As for the harness of Perl, a
//! file whose plan is missing or not kept has failed, because its program died or lost count.

mod buffered;
mod files;
mod point;

use std::io::BufRead;

use assay_proto::{Fault, TestResult};

use self::{
    buffered::Buffered,
    point::{Point, plan},
};
use crate::{
    Attempt, Format, Head, Nature, Problem, Sink, Test,
    durations::duration,
    limits::{DEEPEST, MESSAGE, OUTPUT, TEXT},
    lines::Lines,
    names::{named, shortened},
    sink::Claims,
    sink::Tally,
    texts::{beginning, keep_beginning, keep_end},
};

/// Number of spaces in front of the lines of a subtest.
const INDENT: usize = 4;

/// First words of comments that sum up a run.
const SUMMARY: [&str; 14] = [
    "tests",
    "suites",
    "pass",
    "passed",
    "passing",
    "fail",
    "failed",
    "failing",
    "cancelled",
    "skip",
    "skipped",
    "todo",
    "duration_ms",
    "ok",
];

/// The format of TAP.
pub struct Tap;

impl Format for Tap {
    fn name(&self) -> &'static str {
        "TAP"
    }

    /// Lines of the program that started the tests, and outputs of these, may stand in front of the
    /// first line of TAP. It is the last format that is tried.
    fn recognizes(&self, head: &Head) -> bool {
        let is_tap = |line: &[u8]| is_tap(&String::from_utf8_lossy(line));
        head.object().is_none() && head.array().is_none() && head.lines().any(is_tap)
    }

    fn read(&self, file: &mut dyn BufRead, sink: Sink<'_>) -> Result<(), Fault> {
        let mut report = Report::new(sink);
        let mut lines = Lines::new(self.name(), file);
        while let Some((_, line)) = lines.next()? {
            report.add(&String::from_utf8_lossy(line))?;
        }
        report.end_file()
    }
}

/// Returns whether a line is one of TAP itself.
fn is_tap(line: &str) -> bool {
    line.starts_with("TAP version ")
        || line.starts_with("# Subtest: ")
        || line.starts_with("Bail out!")
        || plan(line).is_some()
        || Point::parse(line).is_some()
}

/// The tests at a level: those of the file, or of the subtest of a test point, which comes behind them.
#[derive(Clone, Copy, Default)]
struct Level {
    plan: Option<usize>,
    count: usize,
    /// Number of tests in front of the plan.
    before_plan: usize,
    /// The smallest and the largest number of its tests, if one has any.
    numbers: Option<(usize, usize)>,
    has_failures: bool,
}

/// State of the reader.
struct Report<'s> {
    /// Titles of the open subtests by level.
    titles: Vec<String>,
    levels: Vec<Level>,
    /// Open subtests whose line is in front of their tests, outermost first.
    buffered: Vec<Buffered>,
    /// The last test, to which the following lines belong. `None` after a suite.
    last: Option<Test>,
    /// The line of the last test, and its level.
    point: Option<(usize, Point)>,
    /// Indentation of the YAML block that the following lines are.
    block: Option<usize>,
    /// Whether the file has begun with its version.
    has_version: bool,
    /// Whether the program has stopped on purpose.
    has_stopped: bool,
    sink: Sink<'s>,
}

impl<'s> Report<'s> {
    fn new(sink: Sink<'s>) -> Self {
        let (titles, levels, buffered, last, point) = Default::default();
        let (block, has_version, has_stopped) = Default::default();
        Self { titles, levels, buffered, last, point, block, has_version, has_stopped, sink }
    }
}

impl Report<'_> {
    fn add(&mut self, line: &str) -> Result<(), Fault> {
        let text = line.trim_start();
        let indent = line.len() - text.len();
        let level = (indent / INDENT).min(DEEPEST);
        let is_aligned = indent.is_multiple_of(INDENT);
        if let Some(block) = self.block {
            // A block that has no end is in front of the next line of TAP that is not within it. Tools write lines of
            // texts without indentation.
            let is_inside = indent >= block || !is_aligned || !is_tap(text);
            self.block = self.block.filter(|_| is_inside && text.trim_end() != "...");
            if self.block.is_some() {
                self.describe(text);
            }
            if is_inside {
                return Ok(());
            }
        }
        // Others are outputs, such as differences of files.
        if text.trim_end() == "---" && indent > 0 {
            self.block = Some(indent);
        } else if text.trim_end() == "}" && is_aligned && !self.buffered.is_empty() {
            return self.close(level);
        } else if text.trim_end() == "{" && is_aligned && self.open_last(level) {
            return Ok(());
        } else if text.starts_with("TAP version ") && indent == 0 {
            self.begin_file()?;
            self.has_version = true;
            return Ok(());
        } else if let Some(title) = text.strip_prefix("# Subtest:") {
            self.flush()?;
            self.close(level)?;
            self.point = None;
            self.titles.resize(level, String::new());
            self.titles.push(shortened(title.trim()));
            return self.flush();
        } else if let Some(comment) = text.strip_prefix('#') {
            self.comment(comment);
        } else if let Some((tests, reason)) = plan(text).filter(|_| is_aligned) {
            self.close(level)?;
            return self.add_plan(level, tests, reason);
        } else if let Some(point) = Point::parse(text).filter(|_| is_aligned) {
            self.flush()?;
            self.close(level)?;
            self.flush()?;
            self.point = None;
            if point.is_open() {
                self.open(level, point, None);
                return Ok(());
            }
            self.add_point(&point, level)?;
            self.point = Some((level, point));
            return Ok(());
        } else if let Some(reason) = text.strip_prefix("Bail out!") {
            self.flush()?;
            self.point = None;
            self.has_stopped = true;
            let message = beginning(reason.trim(), MESSAGE);
            let problem = Problem { nature: Nature::Abortion, message, ..Problem::default() };
            let attempts = vec![Attempt::with(vec![problem])];
            let name = "Bail out!".to_owned();
            self.last = Some(Test { name, attempts, ..Test::default() });
        } else if indent > 0 {
            // Mocha writes the error below the test.
            self.describe(line.strip_prefix("  ").unwrap_or(line));
        }
        Ok(())
    }

    /// Returns the tests at a level.
    fn level(&mut self, level: usize) -> &mut Level {
        if self.levels.len() <= level {
            self.levels.resize(level + 1, Level::default());
        }
        &mut self.levels[level]
    }

    /// Adds a test. A test with subtests is a suite, unless it fails for a reason of its own.
    fn add_point(&mut self, point: &Point, level: usize) -> Result<(), Fault> {
        self.titles.truncate(level + 1);
        let own = self.levels.get(level + 1).copied().unwrap_or_default();
        let is_failed = point.result() == TestResult::Failed;
        let has_tests = own.count > 0 && (own.has_failures || !is_failed);
        // The program of the subtest may have ended behind its plan.
        let is_empty = own.count == 0 && own.plan.is_some_and(|plan| plan > 0);
        let is_suite = has_tests || (is_empty && point.result() == TestResult::Passed);
        // The title at the level of the test is its own, or that of the subtest around it.
        let titles = self.titles.iter().map(String::as_str).filter(|title| !title.is_empty());
        let mut suites: Vec<String> = titles.map(ToOwned::to_owned).collect();
        if self.titles.len() > level && suites.last().is_some_and(|title| title == point.name()) {
            suites.pop();
        }
        let missing = own.plan.unwrap_or_default().saturating_sub(own.count);
        if is_suite && missing > 0 {
            let (found, claims) = own.compared();
            let (suites, name) = (suites.clone(), point.name().to_owned());
            let owner = Test { suites, name, ..Test::default() };
            self.sink.compare(found, claims, &owner)?;
        }
        self.levels.truncate(level + 1);
        let parent = self.level(level);
        parent.count += 1;
        if let Some(number) = point.number() {
            let (first, last) = parent.numbers.unwrap_or((number, number));
            parent.numbers = Some((first.min(number), last.max(number)));
        }
        parent.has_failures |= is_failed || own.has_failures;
        if !is_suite {
            let (class, name) = (shortened(&suites.join(" > ")), named(point.name()));
            let attempts = vec![point.attempt()];
            let seconds = attempts[0].seconds;
            self.last = Some(Test { suites, class, name, seconds, attempts, ..Test::default() });
        }
        if self.titles.last().is_some_and(|title| title == point.name()) {
            self.titles.truncate(level);
        }
        Ok(())
    }

    /// Adds a comment, which explains the test in front of it.
    fn comment(&mut self, comment: &str) {
        let first = comment.split([' ', ':', '=']).find(|word| !word.is_empty());
        if first.is_some_and(|first| SUMMARY.contains(&first)) {
            return;
        }
        let Some(attempt) = self.last.as_mut().and_then(|test| test.attempts.last_mut()) else {
            return;
        };
        let comment = comment.strip_prefix(' ').unwrap_or(comment);
        if attempt.problems.is_empty() {
            keep_end(&mut attempt.output, comment, OUTPUT);
            keep_end(&mut attempt.output, "\n", OUTPUT);
        } else {
            self.describe(comment);
        }
    }

    /// Adds a line that describes the last test.
    fn describe(&mut self, line: &str) {
        let Some(test) = &mut self.last else { return };
        let Some(attempt) = test.attempts.last_mut() else { return };
        if let Some(milliseconds) = line.strip_prefix("duration_ms:") {
            let milliseconds: Option<f64> = milliseconds.trim().parse().ok();
            test.seconds = duration(milliseconds.map(|milliseconds| milliseconds / 1e3));
            attempt.seconds = test.seconds;
            return;
        }
        let Some(problem) = attempt.problems.last_mut() else { return };
        let message = line.strip_prefix("error:").or_else(|| line.strip_prefix("message:"));
        if let Some(message) = message.map(str::trim)
            && problem.message.is_empty()
        {
            let quotes = ['\'', '"'];
            let inner = message.strip_prefix(quotes).and_then(|text| text.strip_suffix(quotes));
            keep_beginning(&mut problem.message, inner.unwrap_or(message), MESSAGE);
        }
        keep_beginning(&mut problem.text, line, TEXT);
        keep_beginning(&mut problem.text, "\n", TEXT);
    }

    fn flush(&mut self) -> Result<(), Fault> {
        self.last.take().map_or(Ok(()), |test| self.sink.add(test))
    }
}

impl Level {
    /// Returns what was found, and what the plan claims.
    fn compared(self) -> (Tally, Claims) {
        let failed = usize::from(self.has_failures);
        let found = Tally { tests: self.count, failed, ..Tally::default() };
        (found, Claims { tests: self.plan, ..Claims::default() })
    }
}

#[cfg(test)]
mod tests;
