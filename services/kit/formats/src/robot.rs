//! The `output.xml` of Robot Framework: suites, tests and keywords.

mod json_output;
mod merged;

use std::io::BufRead;

use assay_proto::{Fault, TestResult};

pub use self::json_output::RobotJson;
use crate::{
    Attempt, Format, Head, Nature, Problem, Property, Sink, Step, Test,
    durations::{duration, seconds},
    limits::{MESSAGE, MOST_STEPS, OUTPUT, STEP},
    names::{named, shortened},
    sink::{Amendment, Claims, count},
    texts::{beginning, keep_end},
    times::time,
    xml::{Attributes, Elements, Path, read_elements},
};

/// The format of Robot Framework.
pub struct Robot;

impl Format for Robot {
    fn name(&self) -> &'static str {
        "Robot Framework XML"
    }

    fn recognizes(&self, head: &Head) -> bool {
        head.xml_root() == "robot"
    }

    fn read(&self, file: &mut dyn BufRead, sink: Sink<'_>) -> Result<(), Fault> {
        let replaced = sink.replaced();
        let (suites, keywords, statistic, claims) = Default::default();
        let mut report = Report { suites, test: None, keywords, statistic, claims, sink };
        read_elements(self.name(), file, &replaced, &mut report)?;
        let Report { claims, sink, .. } = report;
        let found = sink.tally();
        sink.compare(found, claims, &Test::default().of_run()).map(drop)
    }
}

/// Text of the status of a suite in front of the message of its teardown.
const TEARDOWN: &str = "uite teardown failed:";

/// The same if the teardown was skipped, and the text behind its message. It may be HTML.
const SKIPPED: &str = "Skipped in suite teardown:";
const EARLIER: &str = "\n\nEarlier message:\n";

/// A suite while its element is open.
struct Suite {
    name: String,
    /// Number of tests that were passed on before it.
    first: usize,
    is_failed: bool,
    message: String,
}

impl Suite {
    /// Returns what its teardown changes.
    fn teardown(&self) -> Option<Amendment> {
        teardown(&self.message, self.is_failed)
    }
}

/// Returns what the teardown of a suite with this message changes. Robot Framework counts the tests as failed if it
/// failed, and as skipped if it was skipped.
fn teardown(message: &str, is_failed: bool) -> Option<Amendment> {
    let plain = message.strip_prefix("*HTML*").unwrap_or(message).trim_start();
    if let Some(skipped) = plain.strip_prefix(SKIPPED) {
        let reason = skipped.split(EARLIER).next().unwrap_or_default().trim();
        return Some(Amendment::Skip(format!("Skipped in parent suite teardown:\n{reason}")));
    }
    let (_, message) = message.split_once(TEARDOWN).filter(|_| is_failed)?;
    let message = format!("Parent suite teardown failed:\n{}", message.trim());
    let problem = Problem { nature: Nature::Failure, message, text: String::new() };
    Some(Amendment::Failure(problem))
}

/// State of the reader.
struct Report<'s> {
    suites: Vec<Suite>,
    test: Option<Test>,
    /// Open keywords and blocks, as indexes of steps. Those beyond the limit have none.
    keywords: Vec<Option<usize>>,
    /// The open line of the statistics, and that of all tests.
    statistic: Claims,
    claims: Claims,
    sink: Sink<'s>,
}

impl Elements for Report<'_> {
    fn is_output(name: &str) -> bool {
        name == "msg"
    }

    fn open(&mut self, path: &Path, attributes: &Attributes<'_>) -> Result<(), Fault> {
        match path.name() {
            "suite" if self.test.is_none() && path.parent() != "statistics" => {
                let name = attributes.get("name").unwrap_or_default();
                let (name, first) = (shortened(name.trim()), self.sink.tally().tests);
                self.suites.push(Suite { name, first, is_failed: false, message: String::new() });
            }
            "test" | "task" => {
                let name = attributes.get("name").unwrap_or_default();
                let suites: Vec<String> =
                    self.suites.iter().map(|suite| suite.name.clone()).collect();
                self.test = Some(Test {
                    class: named(&suites.join(".")),
                    suites,
                    name: named(&name),
                    attempts: vec![Attempt::default()],
                    ..Test::default()
                });
            }
            name if is_step(name) => self.open_step(name, attributes),
            "status" => self.status(path, attributes),
            "stat" if path.parent() == "total" => {
                let number = |name: &str| attributes.get(name).as_deref().and_then(count);
                let [pass, fail, skip] = ["pass", "fail", "skip"].map(number);
                let tests = pass.zip(fail).map(|(pass, fail)| pass + fail + skip.unwrap_or(0));
                self.statistic = Claims { tests, failures: fail, skipped: None };
            }
            _ => {}
        }
        Ok(())
    }

    fn close(&mut self, path: &Path, text: &str) -> Result<(), Fault> {
        match path.name() {
            "suite" if self.test.is_none() && path.parent() != "statistics" => {
                let suite = self.suites.pop();
                let amended = suite.and_then(|suite| Some((suite.first, suite.teardown()?)));
                if let Some((first, amendment)) = amended {
                    return self.sink.amend(first, amendment);
                }
            }
            "stat" if path.parent() == "total" && text.starts_with("All ") => {
                self.claims = self.statistic;
            }
            "test" | "task" => {
                self.keywords.clear();
                return self.test.take().map_or(Ok(()), |test| self.sink.add(test));
            }
            "status" if self.test.is_none() && path.parent() == "suite" => {
                if let Some(suite) = self.suites.last_mut() {
                    suite.message = beginning(text, MESSAGE);
                }
            }
            name if is_step(name) => _ = self.keywords.pop(),
            "status" if !text.is_empty() => {
                self.message(path.parent(), text);
            }
            "tag" => {
                if let Some(test) = &mut self.test {
                    test.label(Property::new("tag", text));
                }
            }
            "msg" => {
                if let Some(attempt) = self.attempt() {
                    keep_end(&mut attempt.output, text, OUTPUT);
                    keep_end(&mut attempt.output, "\n", OUTPUT);
                }
            }
            _ => {}
        }
        Ok(())
    }
}

impl Report<'_> {
    fn attempt(&mut self) -> Option<&mut Attempt> {
        self.test.as_mut().and_then(|test| test.attempts.last_mut())
    }

    fn open_step(&mut self, element: &str, attributes: &Attributes<'_>) {
        let depth = self.keywords.len();
        let Some(attempt) = self.attempt() else { return };
        let has_room = attempt.steps.len() < MOST_STEPS;
        let index = has_room.then_some(attempt.steps.len());
        if has_room {
            let name = attributes.get("name").unwrap_or_default();
            let kind = attributes.get("type").unwrap_or_default();
            let name = match (name.as_str(), kind.as_str()) {
                ("", "") => element.to_uppercase(),
                ("", kind) => kind.to_owned(),
                (name, "" | "KEYWORD" | "kw") => name.to_owned(),
                (name, kind) => format!("{kind}: {name}"),
            };
            attempt.steps.push(Step { depth, name: beginning(&name, STEP), ..Step::default() });
        }
        self.keywords.push(index);
    }

    /// Reads the status of a test or keyword. Its message follows as text.
    fn status(&mut self, path: &Path, attributes: &Attributes<'_>) {
        let result = result(&attributes.get("status").unwrap_or_default());
        // Up to version 6, there is an end instead of a duration.
        let start = attributes.get("start").or_else(|| attributes.get("starttime"));
        let start = start.and_then(|start| time(&start));
        let end = attributes.get("endtime").and_then(|end| time(&end));
        let between = start.zip(end).map(|(start, end)| (end.0 - start.0).as_seconds_f64());
        let elapsed = attributes.get("elapsed").and_then(|elapsed| seconds(&elapsed, true));
        let elapsed = duration(elapsed.or(between));
        let keyword = self.keywords.last().copied();
        if self.test.is_none() && path.parent() == "suite" {
            if let Some(suite) = self.suites.last_mut() {
                suite.is_failed = result == TestResult::Failed;
            }
            return;
        }
        let Some(test) = &mut self.test else { return };
        let Some(attempt) = test.attempts.last_mut() else { return };
        if matches!(path.parent(), "test" | "task") {
            (test.start, test.seconds) = (start, elapsed);
            (attempt.start, attempt.seconds, attempt.result) = (start, elapsed, result);
            attempt.problems = Attempt::new(start, elapsed, result).problems;
        } else if let Some(step) = keyword.flatten().and_then(|index| attempt.steps.get_mut(index))
        {
            (step.result, step.seconds) = (result, elapsed);
        }
    }

    fn message(&mut self, parent: &str, message: &str) {
        let keyword = self.keywords.last().copied().flatten();
        let Some(test) = &mut self.test else { return };
        if !matches!(parent, "test" | "task") {
            let attempt = test.attempts.last_mut();
            let step = attempt.zip(keyword).and_then(|(one, index)| one.steps.get_mut(index));
            if let Some(step) = step {
                step.message = beginning(message, MESSAGE);
            }
            return;
        }
        let (message, earlier) = merged::separate(message);
        if test.attempts.len() == 1 {
            test.attempts.splice(0..0, earlier);
        }
        let Some(attempt) = test.attempts.last_mut() else { return };
        if let Some(problem) = attempt.problems.last_mut() {
            problem.message = message;
        } else if attempt.result == TestResult::Canceled {
            attempt.reason = message;
        }
    }
}

/// Returns whether an element is a keyword, or a block of them.
fn is_step(name: &str) -> bool {
    matches!(
        name,
        "kw" | "for"
            | "while"
            | "iter"
            | "if"
            | "branch"
            | "try"
            | "group"
            | "return"
            | "break"
            | "continue"
            | "variable"
            | "error"
    )
}

fn result(status: &str) -> TestResult {
    match status {
        "PASS" => TestResult::Passed,
        "FAIL" => TestResult::Failed,
        "SKIP" => TestResult::Canceled,
        _ => TestResult::NotExecuted,
    }
}
