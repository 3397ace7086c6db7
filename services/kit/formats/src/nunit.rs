//! The XML of NUnit 3: nested suites with test cases.

use std::io::BufRead;

use assay_proto::{Fault, TestResult};

use crate::{
    Attachment, Attempt, Format, Head, Nature, Problem, Sink, Test,
    durations::seconds,
    limits::MESSAGE,
    names::{named, shortened},
    sink::{Claims, Tally, count},
    texts::beginning,
    times::time,
    values::pytest_names,
    xml::{Attributes, Elements, Path, read_elements},
};

/// The format of NUnit 3.
pub struct Nunit;

impl Format for Nunit {
    fn name(&self) -> &'static str {
        "NUnit 3 XML"
    }

    fn recognizes(&self, head: &Head) -> bool {
        head.xml_root() == "test-run"
    }

    fn read(&self, file: &mut dyn BufRead, sink: Sink<'_>) -> Result<(), Fault> {
        let replaced = sink.replaced();
        let mut report = Report { suites: Vec::new(), test: None, sink };
        read_elements(self.name(), file, &replaced, &mut report)
    }
}

/// A suite, or the run around suites, while its element is open.
#[derive(Default)]
struct Suite {
    name: String,
    class: String,
    /// Part that failed: `SetUp` and `TearDown` are its own, `Child` and `Parent` are not.
    site: String,
    /// Its own failure, if it has one.
    problem: Option<Problem>,
    claims: Claims,
    /// Tests that were passed on before it.
    start: Tally,
}

impl Suite {
    fn new(attributes: &Attributes<'_>, start: Tally) -> Self {
        let mut suite = Self { start, ..Self::default() };
        let (mut is_failed, mut label) = (false, String::new());
        attributes.each(|name, value| match name {
            "name" => suite.name = shortened(value.trim()),
            "fullname" | "classname" => suite.class = named(value),
            "site" => value.clone_into(&mut suite.site),
            "label" => value.clone_into(&mut label),
            "result" => is_failed = value == "Failed",
            // Explicit tests count, but are not run.
            "total" => suite.claims.tests = count(value),
            "failed" => suite.claims.add_failures(value),
            _ => {}
        });
        if is_failed {
            suite.claims.failures = suite.claims.failures.max(Some(1));
        }
        if is_failed && !matches!(suite.site.as_str(), "Child" | "Parent") {
            let nature = match label.as_str() {
                "Error" | "Invalid" => Nature::Error,
                "Cancelled" => Nature::Abortion,
                _ => Nature::Failure,
            };
            suite.problem = Some(Problem { nature, ..Problem::default() });
        }
        suite
    }

    /// Returns the name of what failed.
    fn hook(&self) -> &'static str {
        match self.site.as_str() {
            "SetUp" => "OneTimeSetUp",
            "TearDown" => "OneTimeTearDown",
            _ => "",
        }
    }
}

/// State of the reader.
struct Report<'s> {
    /// The run and open suites, outermost first.
    suites: Vec<Suite>,
    test: Option<Test>,
    sink: Sink<'s>,
}

impl Elements for Report<'_> {
    fn is_output(name: &str) -> bool {
        name == "output"
    }

    fn open(&mut self, path: &Path, attributes: &Attributes<'_>) -> Result<(), Fault> {
        match path.name() {
            "test-suite" | "test-run" => {
                self.suites.push(Suite::new(attributes, self.sink.tally()));
            }
            "test-case" => self.test = Some(self.test(attributes)),
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
            "test-suite" | "test-run" => return self.close_suite(),
            "test-case" => return self.test.take().map_or(Ok(()), |test| self.sink.add(test)),
            name if self.test.is_none() => {
                let suite = self.suites.last_mut();
                let problem = suite.and_then(|suite| suite.problem.as_mut());
                match (path.parent(), name, problem) {
                    ("failure" | "reason", "message", Some(problem)) => {
                        problem.message = beginning(text, MESSAGE);
                    }
                    ("failure", "stack-trace", Some(problem)) => text.clone_into(&mut problem.text),
                    _ => {}
                }
            }
            name => {
                let attempt = self.test.as_mut().and_then(|test| test.attempts.last_mut());
                let Some(attempt) = attempt else { return Ok(()) };
                match (path.parent(), name, attempt.problems.last_mut()) {
                    ("failure", "message", Some(problem)) => {
                        problem.message = beginning(text, MESSAGE);
                    }
                    ("failure", "stack-trace", Some(problem)) => text.clone_into(&mut problem.text),
                    ("reason", "message", Some(problem)) if problem.message.is_empty() => {
                        problem.message = beginning(text, MESSAGE);
                    }
                    ("reason", "message", None) if attempt.result != TestResult::Passed => {
                        attempt.reason = beginning(text, MESSAGE);
                    }
                    ("test-case", "output", _) => text.clone_into(&mut attempt.output),
                    ("attachment", "filePath", _) => attempt.attach(Attachment::at(text)),
                    _ => {}
                }
            }
        }
        Ok(())
    }
}

impl Report<'_> {
    /// Returns the names of the open suites.
    fn names(&self) -> Vec<String> {
        let names = self.suites.iter().map(|suite| suite.name.clone());
        names.filter(|name| !name.is_empty()).collect()
    }

    /// Passes on the failure of a suite that its tests do not have, and what contradicts its numbers.
    fn close_suite(&mut self) -> Result<(), Fault> {
        let suites = self.names();
        let Some(suite) = self.suites.pop() else { return Ok(()) };
        let found = self.sink.tally().since(suite.start);
        let hook = suite.hook();
        let owner = Test { suites, name: hook.to_owned(), ..Test::default() }.named_by_suite();
        let problem = suite.problem.filter(|problem| {
            // A failed setup is also the failure of its tests.
            !problem.message.is_empty() && (hook != "OneTimeSetUp" || found.failed == 0)
        });
        if let Some(problem) = problem {
            let owner = match hook {
                "" => Test { name: suite.class, ..owner },
                _ => Test { class: suite.class, ..owner },
            };
            return self.sink.add_own(owner, problem);
        }
        self.sink.compare(found, suite.claims, &owner).map(drop)
    }

    fn test(&self, attributes: &Attributes<'_>) -> Test {
        let mut test = Test { suites: self.names(), ..Test::default() };
        let (mut result, mut label) = (String::new(), String::new());
        attributes.each(|name, value| match name {
            "name" => test.name = named(value),
            "classname" => test.class = named(value),
            "start-time" => test.start = time(value),
            "duration" => test.seconds = seconds(value, true).unwrap_or_default(),
            "result" => value.clone_into(&mut result),
            "label" => value.clone_into(&mut label),
            _ => {}
        });
        if let Some((class, name)) = pytest_names(&test.name) {
            (test.class, test.name) = (class, name);
        }
        let result = match (result.as_str(), label.as_str()) {
            ("Passed" | "Warning" | "Success", _) => TestResult::Passed,
            ("Failed" | "Failure" | "Error", "Error" | "Invalid") => TestResult::Error,
            ("Failed" | "Failure" | "Error", "Cancelled") => TestResult::Aborted,
            ("Failed" | "Failure", _) => TestResult::Failed,
            ("Error", _) => TestResult::Error,
            _ => TestResult::Canceled,
        };
        let attempt = Attempt::new(test.start, test.seconds, result);
        test.attempts.push(attempt);
        test
    }
}
