//! TAP, the Test Anything Protocol, versions 12 to 14, with subtests and YAML blocks.

mod point;

use std::io::BufRead;

use assay_proto::{Fault, TestResult};

use self::point::Point;
use crate::{
    Attempt, Format, Head, Nature, Problem, Sink, Test,
    limits::{DEEPEST, MESSAGE, TEXT},
    lines::Lines,
    texts::{beginning, keep_beginning},
    values::{duration, shortened},
};

/// Number of spaces in front of the lines of a subtest.
const INDENT: usize = 4;

/// The format of TAP.
pub struct Tap;

impl Format for Tap {
    fn name(&self) -> &'static str {
        "TAP"
    }

    fn recognizes(&self, head: &Head) -> bool {
        let first = head.lines().find(|line| !line.is_empty()).unwrap_or_default();
        let text = String::from_utf8_lossy(first);
        text.starts_with("TAP version ")
            || text.starts_with("# Subtest: ")
            || is_plan(&text)
            || Point::parse(&text).is_some()
    }

    fn read(&self, file: &mut dyn BufRead, sink: Sink<'_>) -> Result<(), Fault> {
        let mut report = Report {
            titles: Vec::new(),
            children: Vec::new(),
            last: None,
            is_in_block: false,
            sink,
        };
        let mut lines = Lines::new(self.name(), file);
        while let Some((_, line)) = lines.next()? {
            report.add(&String::from_utf8_lossy(line))?;
        }
        report.flush()
    }
}

fn is_plan(text: &str) -> bool {
    text.strip_prefix("1..")
        .is_some_and(|rest| rest.starts_with(|char: char| char.is_ascii_digit()))
}

/// The subtests of a test point, which come in front of it.
#[derive(Clone, Copy, Default)]
struct Children {
    count: usize,
    has_failures: bool,
}

/// State of the reader.
struct Report<'s> {
    /// Titles of the open subtests by level.
    titles: Vec<String>,
    children: Vec<Children>,
    /// The last test, to which the following lines belong. `None` after a suite.
    last: Option<Test>,
    /// Whether the following lines are a YAML block.
    is_in_block: bool,
    sink: Sink<'s>,
}

impl Report<'_> {
    fn add(&mut self, line: &str) -> Result<(), Fault> {
        let text = line.trim_start();
        if self.is_in_block {
            self.is_in_block = text.trim_end() != "...";
            if self.is_in_block {
                self.describe(text);
            }
            return Ok(());
        }
        let indent = line.len() - text.len();
        let level = (indent / INDENT).min(DEEPEST);
        let is_aligned = indent.is_multiple_of(INDENT);
        if text.starts_with("---") {
            self.is_in_block = true;
        } else if let Some(title) = text.strip_prefix("# Subtest:") {
            self.titles.resize(level, String::new());
            self.titles.push(shortened(title.trim()));
            return self.flush();
        } else if let Some(point) = Point::parse(text).filter(|_| is_aligned) {
            self.flush()?;
            self.add_point(&point, level);
        } else if let Some(reason) = text.strip_prefix("Bail out!") {
            self.flush()?;
            let message = beginning(reason.trim(), MESSAGE);
            let problem = Problem { nature: Nature::Abortion, message, ..Problem::default() };
            let attempts = vec![Attempt::with(vec![problem])];
            let name = "Bail out!".to_owned();
            self.last = Some(Test { name, attempts, ..Test::default() });
        } else if indent > 0 && !text.starts_with('#') && !is_plan(text) {
            // Mocha writes the error below the test.
            self.describe(line.strip_prefix("  ").unwrap_or(line));
        }
        Ok(())
    }

    /// Adds a test. A test with subtests is a suite, unless it fails for a reason of its own.
    fn add_point(&mut self, point: &Point, level: usize) {
        let own = self.children.get(level).copied().unwrap_or_default();
        self.children.resize(level, Children::default());
        let is_failed = point.result() == TestResult::Failed;
        if let Some(parent) = self.children.last_mut() {
            parent.count += 1;
            parent.has_failures |= is_failed || own.has_failures;
        }
        let is_suite = own.count > 0 && (own.has_failures || !is_failed);
        self.titles.truncate(level + 1);
        if !is_suite {
            // The title at the level of the test is its own, or that of the subtest around it.
            let titles = self.titles.iter().map(String::as_str).filter(|title| !title.is_empty());
            let mut suites: Vec<&str> = titles.collect();
            if self.titles.len() > level && suites.last() == Some(&point.name()) {
                suites.pop();
            }
            let class = shortened(&suites.join(" > "));
            let name = point.name().to_owned();
            let attempts = vec![point.attempt()];
            self.last = Some(Test { class, name, attempts, ..Test::default() });
        }
        if self.titles.last().is_some_and(|title| title == point.name()) {
            self.titles.truncate(level);
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
        self.last.take().map_or(Ok(()), &mut self.sink)
    }
}

#[cfg(test)]
mod tests {
    use crate::{Test, read};

    fn outline(file: &str) -> Vec<String> {
        let mut lines = Vec::new();
        read(file.as_bytes(), |test: Test| {
            lines.push(format!("{:?} {}", test.result(), test.identifier()));
            Ok(())
        })
        .unwrap();
        lines
    }

    #[test]
    fn subtests_with_their_titles_inside_are_read() {
        // As Perl writes them.
        let file = "1..3\n    # Subtest: cart\n    1..2\n    ok 1 - adds\n    not ok 2 - refuses\n\
            not ok 1 - cart\nok 2 - ships\nok 3\n";
        assert_eq!(
            outline(file),
            ["Passed cart.adds", "Failed cart.refuses", "Passed ships", "Passed 3"]
        );
    }

    #[test]
    fn a_suite_that_fails_by_itself_is_a_test() {
        let file = "TAP version 14\n# Subtest: cart\n    # Subtest: adds\n    ok 1 - adds\n    1..1\n\
            not ok 1 - cart\n1..1\n";
        assert_eq!(outline(file), ["Passed cart.adds", "Failed cart"]);
    }

    #[test]
    fn directives_and_bail_outs_are_read() {
        let file = "not ok 1 - later # TODO soon\nok 2 a \\# b # skip no printer\nnot ok 3 c#SKIP\n\
            Bail out! The database is gone.\n";
        let expected = ["Canceled later", "Canceled a # b", "Failed c#SKIP", "Aborted Bail out!"];
        assert_eq!(outline(file), expected);
    }
}
