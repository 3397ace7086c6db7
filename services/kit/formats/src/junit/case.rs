//! A test while its element is open.

use assay_proto::{TestResult, Timestamp};

use super::{
    dialect::Dialect,
    kind::{Kind, WARNING, When},
};
use crate::{
    ABORTED, Attachment, Attempt, Nature, Problem, Property, Test,
    durations::{has_point, seconds},
    limits::{MESSAGE, MOST_ATTACHMENTS, MOST_ATTEMPTS, MOST_PROBLEMS, OUTPUT, TEXT},
    texts::{keep_beginning, keep_end},
    times::time,
    xml::{Attributes, Path},
};

/// A problem, and what is reported of its attempt.
struct Reported {
    kind: Kind,
    problem: Problem,
    start: Option<Timestamp>,
    seconds: f64,
    output: Output,
}

/// An output, in which Playwright and other tools name attachments.
#[derive(Default)]
struct Output {
    text: String,
    /// Beginning of the last line.
    line: String,
    attachments: Vec<Attachment>,
    /// Number of attempts in front of the last one, which Ginkgo writes into its timeline.
    retries: usize,
}

impl Output {
    fn add(&mut self, more: &str) {
        keep_end(&mut self.text, more, OUTPUT);
        for part in more.split_inclusive('\n') {
            keep_beginning(&mut self.line, part, MESSAGE);
            if part.ends_with('\n') {
                self.end_line();
            }
        }
    }

    fn end_line(&mut self) {
        let line = std::mem::take(&mut self.line);
        self.retries += usize::from(is_retry(line.trim()));
        let path =
            line.trim().strip_prefix("[[ATTACHMENT|").and_then(|rest| rest.strip_suffix("]]"));
        if let Some(path) = path
            && self.attachments.len() < MOST_ATTACHMENTS
        {
            self.attachments.push(Attachment::at(path));
        }
    }
}

/// A test, and what is reported of it.
pub(super) struct Case {
    test: Test,
    skipped: Option<String>,
    /// Text of the element with the reason of a skipped test.
    details: String,
    /// Nature of the problem that the attribute of the status states.
    status: Option<Nature>,
    /// Whether the status states that the test did not run.
    is_not_run: bool,
    /// Whether the test took no time at all.
    is_instant: bool,
    /// Whether the test is expected to fail because it is unfinished.
    is_todo: bool,
    problems: Vec<Reported>,
    output: Output,
    /// Text of the open property, if it has no attribute for its value.
    property: Option<Property>,
}

impl Case {
    pub(super) fn new(test: Test) -> Self {
        let (skipped, details, status, problems, output, property) = Default::default();
        let (is_not_run, is_instant, is_todo) = Default::default();
        Self {
            test,
            skipped,
            details,
            status,
            is_not_run,
            is_instant,
            is_todo,
            problems,
            output,
            property,
        }
    }

    /// Reads the attributes of the test.
    pub(super) fn describe(&mut self, attributes: &Attributes<'_>, has_points: &mut bool) {
        attributes.each(|name, value| match (name, value) {
            ("time", value) => {
                *has_points |= has_point(value);
                self.test.seconds = seconds(value, *has_points).unwrap_or_default();
                self.is_instant = value == "0";
            }
            ("timestamp", value) => self.test.start = time(value),
            ("status" | "result", value) if did_not_run(value) => {
                self.is_not_run |= value == "notrun";
                self.skipped = Some(String::new());
            }
            ("status" | "result", status) => {
                self.status = self.status.or(Nature::of_status(status));
            }
            _ => {}
        });
    }

    pub(super) fn open(&mut self, path: &Path, attributes: &Attributes<'_>, has_points: bool) {
        let name = path.name();
        let of_warning = || Kind::of_warning(name, attributes).filter(|_| self.is_warning());
        if let Some(kind) = Kind::named(name).or_else(of_warning) {
            self.problems.truncate(MOST_PROBLEMS);
            self.problems.push(Reported::new(kind, attributes, has_points));
        } else if name == "skipped" {
            self.details.clear();
            let reason = self.skipped.get_or_insert_default();
            attributes.each(|name, value| match name {
                "message" => {
                    keep_beginning(reason, value, MESSAGE);
                    // Catch2 marks tests that are expected to fail.
                    self.is_todo |= value.starts_with("TEST_CASE tagged with");
                }
                "type" => self.is_todo |= value == "todo",
                _ => {}
            });
        } else if name == "property" && path.parent() == "properties" {
            self.property = Some(attributes.property());
        }
    }

    pub(super) fn text(&mut self, path: &Path, text: &str) {
        if let Some(property) = &mut self.property {
            keep_beginning(&mut property.value, text, MESSAGE);
            return;
        }
        let is_known = |name: &&str| {
            Kind::named(name).is_some()
                || matches!(*name, WARNING | "testcase" | "skipped" | "system-out" | "system-err")
        };
        match path.names().find(is_known) {
            Some("skipped") => {
                self.skipped.get_or_insert_default();
                keep_beginning(&mut self.details, text, MESSAGE);
            }
            Some("system-out" | "system-err") => {
                let is_within = path.names().any(|name| Kind::named(name).is_some());
                let is_own = |problem: &&mut Reported| problem.kind.when != When::Decisive;
                let problem =
                    self.problems.last_mut().filter(|problem| is_within && is_own(problem));
                problem.map_or(&mut self.output, |problem| &mut problem.output).add(text);
            }
            Some(WARNING) if !self.is_warning() => {}
            Some("testcase") | None => {}
            Some(_) => {
                if let Some(last) = self.problems.last_mut() {
                    keep_beginning(&mut last.problem.text, text, TEXT);
                }
            }
        }
    }

    /// Returns whether the test stands for others that `PHPUnit` cannot run, of which it only has a warning.
    fn is_warning(&self) -> bool {
        self.test.name == "Warning"
    }

    pub(super) fn close(&mut self, name: &str) {
        match name {
            "system-out" | "system-err" => {
                self.output.end_line();
                if let Some(last) = self.problems.last_mut() {
                    last.output.end_line();
                }
            }
            "property" => {
                let Some(mut property) = self.property.take() else { return };
                property.value.truncate(property.value.trim_end().len());
                self.test.label(property);
            }
            _ => {}
        }
    }

    /// Returns the problem of a test without an element for it.
    fn unlisted_problem(&self, dialect: Dialect) -> Option<Reported> {
        if !self.problems.is_empty() {
            return None;
        }
        match (&self.skipped, self.status) {
            // CTest fails tests that it cannot start. Those that skip themselves say so.
            (Some(reason), _) => {
                let is_chosen = ["", "Disabled"].contains(&reason.as_str());
                let is_failed = self.is_not_run && !is_chosen && !reason.starts_with("SKIP_");
                is_failed.then(|| Reported::unlisted(Nature::Error, reason))
            }
            (None, Some(nature)) => {
                Some(Reported::unlisted(nature, "The test failed without a reason."))
            }
            // Vitest lists tests that did not run, because the run was stopped, as others.
            (None, None) if dialect == Dialect::Vitest && self.is_instant => {
                Some(Reported::unlisted(Nature::Abortion, "The test did not run."))
            }
            (None, None) => None,
        }
    }

    /// Returns the test with its attempts.
    pub(super) fn finish(mut self, dialect: Dialect) -> Test {
        self.problems.truncate(MOST_PROBLEMS);
        self.problems.extend(self.unlisted_problem(dialect));
        let Self { mut test, skipped, details, is_todo, mut problems, output, .. } = self;
        let (is_skipped, retries) = (skipped.is_some(), output.retries);
        let mut reason = lines([&skipped.unwrap_or_default(), &details]);
        if is_todo {
            for Reported { problem, .. } in problems.drain(..) {
                reason = lines([&problem.message, &problem.text, &reason]);
            }
        }
        let (decisive, others): (Vec<_>, Vec<_>) =
            problems.into_iter().partition(|problem| problem.kind.when == When::Decisive);
        let is_repeated = others.iter().any(|other| other.kind.when == When::Repeated);
        let own = Attempt {
            start: test.start,
            seconds: test.seconds,
            output: output.text,
            attachments: output.attachments,
            reason,
            ..Attempt::with(decisive.into_iter().map(|reported| reported.problem).collect())
        };
        let own = if is_skipped && own.problems.is_empty() {
            Attempt { result: TestResult::Canceled, ..own }
        } else {
            own
        };
        for _ in 0..retries.min(MOST_ATTEMPTS) {
            test.push(Attempt::unreported());
        }
        // The first attempt is the one of the test itself, or else the last one is.
        let is_first = is_repeated || !own.problems.is_empty();
        let mut others: Vec<Attempt> = others.into_iter().map(Reported::into_attempt).collect();
        let has_own = !is_repeated || !own.problems.is_empty();
        if has_own {
            others.insert(if is_first { 0 } else { others.len() }, own);
        }
        for attempt in others {
            test.push(attempt);
        }
        test
    }
}

impl Reported {
    /// Returns the problem of a test without an element for it.
    fn unlisted(nature: Nature, message: &str) -> Self {
        let message = message.to_owned();
        let problem = Problem { nature, message, ..Problem::default() };
        let kind = Kind { nature, when: When::Decisive };
        Self { kind, problem, start: None, seconds: 0.0, output: Output::default() }
    }

    fn new(kind: Kind, attributes: &Attributes<'_>, has_points: bool) -> Self {
        let (problem, output) = (Problem::default(), Output::default());
        let mut reported = Self { kind, problem, start: None, seconds: 0.0, output };
        reported.problem.nature = kind.nature;
        attributes.each(|name, value| match name {
            "message" => keep_beginning(&mut reported.problem.message, value, MESSAGE),
            "time" => reported.seconds = seconds(value, has_points).unwrap_or_default(),
            "timestamp" => reported.start = time(value),
            "type" if value == ABORTED => reported.problem.nature = Nature::Abortion,
            _ => {}
        });
        reported
    }

    fn into_attempt(self) -> Attempt {
        Attempt {
            start: self.start,
            seconds: self.seconds,
            output: self.output.text,
            attachments: self.output.attachments,
            ..Attempt::with(vec![self.problem])
        }
    }
}

/// Returns whether a line is that of Ginkgo between attempts: `Attempt #1 Failed.  Retrying ↺ @ 11/20/26 10:14:04`.
fn is_retry(line: &str) -> bool {
    let rest = line
        .strip_prefix("Attempt #")
        .map(|rest| rest.trim_start_matches(|c: char| c.is_ascii_digit()));
    rest.is_some_and(|rest| rest.starts_with(" Failed.  Retrying "))
}

/// Returns whether a test with this status did not run, or not to its end.
fn did_not_run(status: &str) -> bool {
    matches!(
        status.to_ascii_lowercase().as_str(),
        "notrun" | "disabled" | "skipped" | "suppressed" | "canceled" | "cancelled" | "stopped"
    )
}

/// Returns texts as lines of one, without repeated and empty ones.
fn lines<const TEXTS: usize>(texts: [&str; TEXTS]) -> String {
    let mut lines: Vec<&str> = texts.map(str::trim).into();
    lines.retain(|text| !text.is_empty());
    lines.dedup();
    lines.join("\n")
}
