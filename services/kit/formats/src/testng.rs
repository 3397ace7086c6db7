//! The `testng-results.xml` of TestNG: suites, tests, classes and methods.

mod groups;

use std::{collections::HashSet, io::BufRead, mem::take};

use assay_proto::{Fault, TestResult};

use self::groups::Groups;
use crate::{
    Attempt, Format, Head, Property, Retry, Sink, Test,
    durations::duration,
    held,
    limits::{MESSAGE, MOST_LABELS, OUTPUT},
    names::{named, shortened},
    sink::{Claims, count},
    texts::{beginning, keep_end},
    times::time,
    xml::{Attributes, Elements, Path, read_elements},
};

/// Maximum size of the methods of a class that are put in order, in bytes. Attempts that are farther
/// from each other stay in the order of the file.
const LARGEST: usize = 1 << 20;

/// The format of TestNG.
pub struct TestNg;

impl Format for TestNg {
    fn name(&self) -> &'static str {
        "TestNG XML"
    }

    fn recognizes(&self, head: &Head) -> bool {
        head.xml_root() == "testng-results"
    }

    fn read(&self, file: &mut dyn BufRead, sink: Sink<'_>) -> Result<(), Fault> {
        let (suites, class) = (Vec::new(), String::new());
        let replaced = sink.replaced();
        let mut report = Report {
            suites,
            class,
            groups: Groups::default(),
            test: None,
            is_configuration: false,
            is_retried: false,
            is_skipped_by_error: false,
            waiting: Vec::new(),
            size: 0,
            retried: HashSet::new(),
            claims: Claims::default(),
            ignored: 0,
            configurations: 0,
            failures: 0,
            sink,
        };
        read_elements(self.name(), file, &replaced, &mut report)
    }
}

/// State of the reader.
struct Report<'s> {
    /// The open suite and test, which is a part of a suite.
    suites: Vec<String>,
    class: String,
    groups: Groups,
    test: Option<Test>,
    /// Whether the open method prepares tests or cleans up. It only counts if it fails.
    is_configuration: bool,
    /// Whether the open method failed and was run again.
    is_retried: bool,
    /// Whether the open method was skipped because of an error. Before version 7, TestNG reports attempts
    /// in this way.
    is_skipped_by_error: bool,
    /// Methods of the open class, and whether they were run again: TestNG writes the attempts of a class
    /// in any order.
    waiting: Vec<(bool, Test)>,
    /// Memory of these, in bytes.
    size: usize,
    /// Methods that were run again, with their parameters.
    retried: HashSet<(String, String)>,
    /// Numbers that the report states. Ignored tests are not listed.
    claims: Claims,
    ignored: usize,
    /// Number of failed configuration methods that were passed on.
    configurations: usize,
    /// Number of tests that failed and were not run again.
    failures: usize,
    sink: Sink<'s>,
}

impl Elements for Report<'_> {
    fn is_output(name: &str) -> bool {
        name == "line"
    }

    fn open(&mut self, path: &Path, attributes: &Attributes<'_>) -> Result<(), Fault> {
        match path.name() {
            "suite" | "test" => {
                let name = attributes.get("name").unwrap_or_default();
                self.suites.push(shortened(name.trim()));
            }
            "group" => self.groups.open(attributes),
            "method" if path.parent() == "group" => self.groups.add(attributes),
            "class" => self.class = named(&attributes.get("name").unwrap_or_default()),
            "testng-results" => attributes.each(|name, value| match name {
                "total" => self.claims.tests = count(value),
                "failed" => self.claims.add_failures(value),
                "ignored" => self.ignored = count(value).unwrap_or_default(),
                _ => {}
            }),
            "test-method" => self.open_method(attributes),
            "exception" => {
                let class = attributes.get("class").unwrap_or_default();
                let is_own = class.ends_with("SkipException") || class == "java.lang.Throwable";
                let result = self.test.as_ref().map(Test::result);
                self.is_skipped_by_error = result == Some(TestResult::Canceled) && !is_own;
            }
            _ => {}
        }
        Ok(())
    }

    fn close(&mut self, path: &Path, text: &str) -> Result<(), Fault> {
        match path.name() {
            "suite" | "test" => _ = self.suites.pop(),
            "test-method" => return self.close_method(),
            "class" => return self.release(),
            "testng-results" => {
                let mut found = self.sink.tally();
                found.tests = found.tests - self.configurations + self.ignored;
                found.failed = self.failures;
                let owner = Test::default().of_run();
                return self.sink.compare(found, self.claims, &owner).map(drop);
            }
            name => {
                let Some(method) = &mut self.test else { return Ok(()) };
                let Some(attempt) = method.attempts.last_mut() else { return Ok(()) };
                match (name, attempt.problems.last_mut()) {
                    ("message", Some(problem)) => problem.message = beginning(text, MESSAGE),
                    ("message", None) if !text.is_empty() => {
                        attempt.reason = beginning(text, MESSAGE);
                    }
                    ("full-stacktrace" | "stack-trace", Some(problem)) => {
                        text.clone_into(&mut problem.text);
                    }
                    ("line", _) => {
                        keep_end(&mut attempt.output, text, OUTPUT);
                        keep_end(&mut attempt.output, "\n", OUTPUT);
                    }
                    // Custom attributes have values, too.
                    ("value", _)
                        if path.parent() == "param" && method.parameters.len() < MOST_LABELS =>
                    {
                        let number = (method.parameters.len() + 1).to_string();
                        method.parameters.push(Property::new(&number, text));
                    }
                    _ => {}
                }
            }
        }
        Ok(())
    }
}

impl Report<'_> {
    fn close_method(&mut self) -> Result<(), Fault> {
        let Some(test) = self.test.take() else { return Ok(()) };
        if self.is_configuration {
            if test.result() != TestResult::Error {
                return Ok(());
            }
            self.configurations += 1;
            return self.sink.add(test);
        }
        self.failures += usize::from(test.result() == TestResult::Failed && !self.is_retried);
        self.size += held::size(&test);
        self.waiting.push((self.is_retried || self.is_skipped_by_error, test));
        if self.size > LARGEST { self.release() } else { Ok(()) }
    }

    /// Passes on the methods that wait, those that were run again first: the next ones with the same
    /// parameters are further attempts.
    fn release(&mut self) -> Result<(), Fault> {
        self.size = 0;
        let (again, last): (Vec<_>, Vec<_>) =
            take(&mut self.waiting).into_iter().partition(|(is_run_again, _)| *is_run_again);
        for (is_run_again, mut test) in again.into_iter().chain(last) {
            let key = (test.identifier(), test.variant());
            if self.retried.remove(&key) {
                test.retry = Retry::Always;
            }
            if is_run_again {
                self.retried.insert(key);
            }
            self.sink.add(test)?;
        }
        Ok(())
    }

    fn open_method(&mut self, attributes: &Attributes<'_>) {
        let mut test =
            Test { suites: self.suites.clone(), class: self.class.clone(), ..Test::default() };
        let mut result = TestResult::Canceled;
        self.is_configuration = attributes.get("is-config").as_deref() == Some("true");
        self.is_retried = attributes.get("retried").as_deref() == Some("true");
        self.is_skipped_by_error = false;
        attributes.each(|name, value| match (name, value) {
            ("name", value) => test.name = named(value),
            ("started-at", value) => test.start = time(value),
            ("duration-ms", value) => {
                let milliseconds: Option<f64> = value.trim().parse().ok();
                test.seconds = duration(milliseconds.map(|milliseconds| milliseconds / 1e3));
            }
            ("status", "PASS") => result = TestResult::Passed,
            ("status", "FAIL") if self.is_configuration => result = TestResult::Error,
            ("status", "FAIL" | "SUCCESS_PERCENTAGE_FAILURE") => result = TestResult::Failed,
            // TestNG reports attempts before the last one as skipped.
            ("status", "SKIP") if self.is_retried => result = TestResult::Failed,
            _ => {}
        });
        let attempt = Attempt::new(test.start, test.seconds, result);
        test.attempts.push(attempt);
        self.groups.tag(&mut test);
        self.test = Some(test);
    }
}
