//! The XML of NUnit 3: nested suites with test cases.

use std::io::BufRead;

use assay_proto::{Fault, TestResult};

use crate::{
    Attachment, Attempt, Content, Format, Head, Link, Property, Sink, Test,
    limits::{MESSAGE, MOST_ATTACHMENTS, MOST_LABELS, OUTPUT, TEXT},
    texts::{beginning, keep_beginning, keep_end},
    values::{pytest_names, seconds, shortened, time},
    xml::{self, Attributes, Document, Path},
};

/// The format of NUnit 3.
pub struct Nunit;

impl Format for Nunit {
    fn name(&self) -> &'static str {
        "NUnit 3 XML"
    }

    fn media_types(&self) -> &'static [&'static str] {
        &["application/xml", "text/xml"]
    }

    fn recognizes(&self, head: &Head) -> bool {
        head.xml_root() == "test-run"
    }

    fn read(&self, file: &mut dyn BufRead, sink: Sink<'_>) -> Result<(), Fault> {
        let mut report = Report { suites: Vec::new(), test: None, text: String::new(), sink };
        xml::read(self.name(), file, &mut report)
    }
}

/// State of the reader.
struct Report<'s> {
    suites: Vec<String>,
    test: Option<Test>,
    /// Text of the open element.
    text: String,
    sink: Sink<'s>,
}

impl Document for Report<'_> {
    fn open(&mut self, path: &Path, attributes: &Attributes<'_>) -> Result<(), Fault> {
        self.text.clear();
        match path.name() {
            "test-suite" => {
                let name = attributes.get("name").unwrap_or_default();
                self.suites.push(shortened(name.trim()));
            }
            "test-case" => self.test = Some(self.test(attributes)),
            "property" => {
                if let Some(test) = &mut self.test
                    && test.labels.len() < MOST_LABELS
                {
                    let name = attributes.get("name").unwrap_or_default();
                    let value = attributes.get("value").unwrap_or_default();
                    test.links.extend(Link::of(&name, &value));
                    let name = if name == "Category" { "tag" } else { &name };
                    test.labels.push(Property::new(name, &value));
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn text(&mut self, path: &Path, text: &str) {
        match path.name() {
            "output" => keep_end(&mut self.text, text, OUTPUT),
            _ => keep_beginning(&mut self.text, text, TEXT),
        }
    }

    fn close(&mut self, path: &Path) -> Result<(), Fault> {
        let text = std::mem::take(&mut self.text);
        let text = text.trim();
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
                    ("attachment", "filePath", _)
                        if attempt.attachments.len() < MOST_ATTACHMENTS =>
                    {
                        let name = text.rsplit(['/', '\\']).next().unwrap_or(text).to_owned();
                        let content = Content::Path(beginning(text, MESSAGE));
                        let media_type = String::new();
                        attempt.attachments.push(Attachment { name, media_type, content });
                    }
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
