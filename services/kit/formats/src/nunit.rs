//! The XML of NUnit 3: nested suites with test cases.

use std::io::BufRead;

use assay_proto::{Fault, TestResult};

use crate::{
    Attachment, Attempt, Format, Head, Sink, Test,
    limits::MESSAGE,
    texts::beginning,
    values::{pytest_names, seconds, shortened, time},
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
        let mut report = Report { suites: Vec::new(), test: None, sink };
        read_elements(self.name(), file, &mut report)
    }
}

/// State of the reader.
struct Report<'s> {
    suites: Vec<String>,
    test: Option<Test>,
    sink: Sink<'s>,
}

impl Elements for Report<'_> {
    fn is_output(name: &str) -> bool {
        name == "output"
    }

    fn open(&mut self, path: &Path, attributes: &Attributes<'_>) -> Result<(), Fault> {
        match path.name() {
            "test-suite" => {
                let name = attributes.get("name").unwrap_or_default();
                self.suites.push(shortened(name.trim()));
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
            "test-suite" => _ = self.suites.pop(),
            "test-case" => return self.test.take().map_or(Ok(()), &mut self.sink),
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
    fn test(&self, attributes: &Attributes<'_>) -> Test {
        let mut test = Test { suites: self.suites.clone(), ..Test::default() };
        let (mut result, mut label) = (String::new(), String::new());
        attributes.each(|name, value| match name {
            "name" => test.name = beginning(value.trim(), MESSAGE),
            "classname" => test.class = beginning(value.trim(), MESSAGE),
            "start-time" => test.start = time(value),
            "duration" => test.seconds = seconds(value).unwrap_or_default(),
            "result" => value.clone_into(&mut result),
            "label" => value.clone_into(&mut label),
            _ => {}
        });
        if let Some((class, name)) = pytest_names(&test.name) {
            (test.class, test.name) = (class, name);
        }
        let result = match (result.as_str(), label.as_str()) {
            ("Passed" | "Warning" | "Success", _) => TestResult::Passed,
            ("Failed", "Error" | "Invalid") => TestResult::Error,
            ("Failed", "Cancelled") => TestResult::Aborted,
            ("Failed", _) => TestResult::Failed,
            _ => TestResult::Canceled,
        };
        let attempt = Attempt::new(test.start, test.seconds, result);
        test.attempts.push(attempt);
        test
    }
}
