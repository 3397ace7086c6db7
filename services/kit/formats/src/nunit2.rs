//! The XML of NUnit 2, which Pester writes too: nested suites with test cases.
//!
//! The name of a test begins with its class: the fixture with its namespace, or the block of Pester.

mod suite;

use std::io::BufRead;

use assay_proto::{Fault, TestResult, Timestamp};

use self::suite::{Suite, class_of};
use crate::{
    Attempt, Format, Head, Nature, Problem, Property, Sink, Test,
    durations::seconds,
    limits::MESSAGE,
    names::named,
    sink::Amendment,
    texts::beginning,
    times::time,
    xml::{Attributes, Elements, Path, read_elements},
};

/// The format of NUnit 2.
pub struct Nunit2;

impl Format for Nunit2 {
    fn name(&self) -> &'static str {
        "NUnit 2 XML"
    }

    fn recognizes(&self, head: &Head) -> bool {
        head.xml_root() == "test-results"
    }

    fn read(&self, file: &mut dyn BufRead, sink: Sink<'_>) -> Result<(), Fault> {
        let replaced = sink.replaced();
        let mut report = Report { suites: Vec::new(), start: None, test: None, sink };
        read_elements(self.name(), file, &replaced, &mut report)
    }
}

/// State of the reader.
struct Report<'s> {
    /// The run and open suites, outermost first.
    suites: Vec<Suite>,
    /// Time of the run.
    start: Option<Timestamp>,
    test: Option<Test>,
    sink: Sink<'s>,
}

impl Elements for Report<'_> {
    fn is_output(_: &str) -> bool {
        false
    }

    fn open(&mut self, path: &Path, attributes: &Attributes<'_>) -> Result<(), Fault> {
        match path.name() {
            "test-results" => {
                self.start = start(attributes);
                self.suites.push(Suite::of_run(attributes, self.sink.tally()));
            }
            "test-suite" => self.suites.push(Suite::new(attributes, self.sink.tally())),
            "test-case" => self.test = Some(self.test(attributes)),
            "category" => {
                let tag = Property::new("tag", &attributes.get("name").unwrap_or_default());
                match (&mut self.test, self.suites.last_mut()) {
                    (Some(test), _) => test.label(tag),
                    (None, Some(suite)) => suite.tag(tag),
                    (None, None) => {}
                }
            }
            "property" => {
                if let Some(test) = &mut self.test {
                    test.label(attributes.dotnet_label());
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn close(&mut self, path: &Path, text: &str) -> Result<(), Fault> {
        match path.name() {
            "test-suite" | "test-results" => return self.close_suite(),
            "test-case" => return self.test.take().map_or(Ok(()), |test| self.sink.add(test)),
            _ => {}
        }
        let attempt = self.test.as_mut().and_then(|test| test.attempts.last_mut());
        let Some(attempt) = attempt else {
            if let Some(suite) = self.suites.last_mut() {
                suite.text(path, text);
            }
            return Ok(());
        };
        match (path.parent(), path.name(), attempt.problems.last_mut()) {
            ("failure" | "reason", "message", Some(problem)) if !text.is_empty() => {
                problem.message = beginning(text, MESSAGE);
            }
            ("failure", "stack-trace", Some(problem)) => text.clone_into(&mut problem.text),
            ("reason" | "failure", "message", None) if attempt.result != TestResult::Passed => {
                attempt.reason = beginning(text, MESSAGE);
            }
            _ => {}
        }
        Ok(())
    }
}

/// Returns the time of the run. NUnit writes the one of its end.
fn start(attributes: &Attributes<'_>) -> Option<Timestamp> {
    let part = |name| attributes.get(name).unwrap_or_default();
    time(&format!("{} {}", part("date"), part("time")))
}

impl Report<'_> {
    /// Passes on the failure of a suite that its tests do not have, and what contradicts its numbers.
    fn close_suite(&mut self) -> Result<(), Fault> {
        let names: Vec<String> = self.suites.iter().map(|suite| suite.name.clone()).collect();
        let suites = names.into_iter().filter(|name| !name.is_empty()).collect();
        let class = suite::fixture(&self.suites);
        let Some(suite) = self.suites.pop() else { return Ok(()) };
        let found = self.sink.tally().since(suite.start);
        let owner = if self.suites.is_empty() {
            Test::default().of_run()
        } else {
            Test { suites, class, ..Test::default() }
        };
        if let Some((hook, problem)) = suite.failure() {
            if hook == suite::SETUP && found.failed > 0 {
                // Its tests failed because of it, and only state that.
                let problem = Problem { nature: Nature::Failure, ..problem };
                return self.sink.amend(suite.start.tests, Amendment::Failure(problem));
            }
            return self.sink.add_own(Test { name: hook.to_owned(), ..owner }, problem);
        }
        self.sink.compare(found, suite.claims, &owner).map(drop)
    }

    fn test(&self, attributes: &Attributes<'_>) -> Test {
        let mut test = Test { start: self.start, ..Test::default() };
        let (mut name, mut result) = (String::new(), String::new());
        let (mut is_executed, mut is_success) = (true, None);
        attributes.each(|attribute, value| match attribute {
            "name" => value.clone_into(&mut name),
            "time" => test.seconds = seconds(value, false).unwrap_or_default(),
            "result" => value.clone_into(&mut result),
            "executed" => is_executed = !value.eq_ignore_ascii_case("false"),
            "success" => is_success = Some(value.eq_ignore_ascii_case("true")),
            _ => {}
        });
        let (class, own) = class_of(&name, &self.suites);
        (test.class, test.name) = (named(class), named(own));
        suite::separate_arguments(&mut test, &self.suites);
        test.suites = suite::titles(&self.suites);
        for tag in self.suites.iter().flat_map(|suite| &suite.tags) {
            test.label(tag.clone());
        }
        let result = match (result.as_str(), is_executed, is_success) {
            // Up to version 2.4, reports do not have a result.
            ("Success", ..) | ("", true, Some(true)) => TestResult::Passed,
            ("Failure" | "Failed", ..) | ("", true, Some(false)) => TestResult::Failed,
            ("Cancelled", ..) => TestResult::Aborted,
            ("Ignored" | "Skipped" | "Inconclusive", ..) | ("", false, _) => TestResult::Canceled,
            // Also a test that cannot run, which is invalid.
            _ => TestResult::Error,
        };
        test.attempts.push(Attempt::new(test.start, test.seconds, result));
        test
    }
}
