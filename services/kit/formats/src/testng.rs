//! The `testng-results.xml` of TestNG: suites, tests, classes and methods.

use std::io::BufRead;

use assay_proto::{Fault, TestResult};

use crate::{
    Attempt, Format, Head, Property, Sink, Test,
    limits::{MESSAGE, MOST_LABELS, OUTPUT},
    texts::{beginning, keep_end},
    values::{duration, shortened, time},
    xml::{Attributes, Elements, Path, read_elements},
};

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
        let mut report = Report { suites, class, test: None, is_configuration: false, sink };
        read_elements(self.name(), file, &mut report)
    }
}

/// State of the reader.
struct Report<'s> {
    /// The open suite and test, which is a part of a suite.
    suites: Vec<String>,
    class: String,
    test: Option<Test>,
    /// Whether the open method prepares tests or cleans up. It only counts if it fails.
    is_configuration: bool,
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
            "class" => self.class = beginning(&attributes.get("name").unwrap_or_default(), MESSAGE),
            "test-method" => self.open_method(attributes),
            _ => {}
        }
        Ok(())
    }

    fn close(&mut self, path: &Path, text: &str) -> Result<(), Fault> {
        match path.name() {
            "suite" | "test" => _ = self.suites.pop(),
            "test-method" => {
                let counts =
                    |test: &Test| !self.is_configuration || test.result() == TestResult::Error;
                return self.test.take().filter(counts).map_or(Ok(()), &mut self.sink);
            }
            name => {
                let Some(method) = &mut self.test else { return Ok(()) };
                let Some(attempt) = method.attempts.last_mut() else { return Ok(()) };
                match (name, attempt.problems.last_mut()) {
                    ("message", Some(problem)) => problem.message = beginning(text, MESSAGE),
                    ("message", None) => attempt.reason = beginning(text, MESSAGE),
                    ("full-stacktrace" | "stack-trace", Some(problem)) => {
                        text.clone_into(&mut problem.text);
                    }
                    ("line", _) => {
                        keep_end(&mut attempt.output, text, OUTPUT);
                        keep_end(&mut attempt.output, "\n", OUTPUT);
                    }
                    ("value", _) if method.parameters.len() < MOST_LABELS => {
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
    fn open_method(&mut self, attributes: &Attributes<'_>) {
        let mut test =
            Test { suites: self.suites.clone(), class: self.class.clone(), ..Test::default() };
        let mut result = TestResult::Canceled;
        self.is_configuration = attributes.get("is-config").as_deref() == Some("true");
        attributes.each(|name, value| match (name, value) {
            ("name", value) => test.name = beginning(value.trim(), MESSAGE),
            ("started-at", value) => test.start = time(value.trim_end_matches(" GMT")),
            ("duration-ms", value) => {
                let milliseconds: Option<f64> = value.trim().parse().ok();
                test.seconds = duration(milliseconds.map(|milliseconds| milliseconds / 1e3));
            }
            ("status", "PASS") => result = TestResult::Passed,
            ("status", "FAIL") if self.is_configuration => result = TestResult::Error,
            ("status", "FAIL") => result = TestResult::Failed,
            _ => {}
        });
        let attempt = Attempt::new(test.start, test.seconds, result);
        test.attempts.push(attempt);
        self.test = Some(test);
    }
}
