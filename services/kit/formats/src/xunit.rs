//! The XML of xUnit.net, versions 2 and 3: assemblies, collections and tests.

use std::io::BufRead;

use assay_proto::{Fault, TestResult, Timestamp};

use crate::{
    Attempt, Format, Head, Sink, Test,
    durations::seconds,
    limits::MESSAGE,
    names::{named, shortened},
    sink::{Claims, Tally, count},
    texts::beginning,
    times::time,
    xml::{Attributes, Elements, Path, read_elements},
};

/// The format of xUnit.net.
pub struct Xunit;

impl Format for Xunit {
    fn name(&self) -> &'static str {
        "xUnit.net XML"
    }

    fn recognizes(&self, head: &Head) -> bool {
        matches!(head.xml_root(), "assemblies" | "assembly")
    }

    fn read(&self, file: &mut dyn BufRead, sink: Sink<'_>) -> Result<(), Fault> {
        let replaced = sink.replaced();
        let (assembly, claims, before) = Default::default();
        let mut report = Report { assembly, start: None, claims, before, test: None, sink };
        read_elements(self.name(), file, &replaced, &mut report)
    }
}

/// State of the reader.
struct Report<'s> {
    /// File name of the open assembly.
    assembly: String,
    /// Start time of the open assembly.
    start: Option<Timestamp>,
    /// Numbers that the open assembly states, and those of the tests before it.
    claims: Claims,
    before: Tally,
    test: Option<Test>,
    sink: Sink<'s>,
}

impl Elements for Report<'_> {
    fn is_output(name: &str) -> bool {
        name == "output"
    }

    fn open(&mut self, path: &Path, attributes: &Attributes<'_>) -> Result<(), Fault> {
        match path.name() {
            "assembly" => {
                let name = attributes.get("name").unwrap_or_default();
                self.assembly = shortened(name.rsplit(['/', '\\']).next().unwrap_or_default());
                self.open_assembly(attributes);
            }
            "test" => self.test = Some(self.test(attributes)),
            // A failure outside of tests, such as the clean-up of a class.
            "error" if path.parent() == "errors" => {
                let kind = attributes.get("type").unwrap_or_default();
                let name = attributes.get("name").filter(|name| !name.is_empty());
                let mut test = self.named(&self.assembly, &name.unwrap_or(kind));
                test.attempts = vec![Attempt::new(test.start, 0.0, TestResult::Error)];
                self.test = Some(test);
            }
            "trait" => {
                if let Some(test) = &mut self.test {
                    test.label(attributes.dotnet_label());
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn close(&mut self, path: &Path, text: &str) -> Result<(), Fault> {
        let name = path.name();
        if name == "test" || (name == "error" && path.parent() == "errors") {
            return self.test.take().map_or(Ok(()), |test| self.sink.add(test));
        }
        if name == "assembly" {
            let found = self.sink.tally().since(self.before);
            let owner = Test { name: self.assembly.clone(), ..Test::default() };
            return self.sink.compare(found, self.claims, &owner).map(drop);
        }
        let attempt = self.test.as_mut().and_then(|test| test.attempts.last_mut());
        let Some(attempt) = attempt else { return Ok(()) };
        match (path.parent(), name, attempt.problems.last_mut()) {
            ("failure", "message", Some(problem)) => problem.message = beginning(text, MESSAGE),
            ("failure", "stack-trace", Some(problem)) => text.clone_into(&mut problem.text),
            (_, "reason", _) => attempt.reason = beginning(text, MESSAGE),
            (_, "output", _) => text.clone_into(&mut attempt.output),
            _ => {}
        }
        Ok(())
    }
}

impl Report<'_> {
    /// Reads what an assembly states. Only its start in version 3 has a time zone.
    fn open_assembly(&mut self, attributes: &Attributes<'_>) {
        (self.claims, self.before) = (Claims::default(), self.sink.tally());
        let (mut date, mut clock, mut start) = (String::new(), String::new(), None);
        attributes.each(|name, value| match name {
            "run-date" => value.clone_into(&mut date),
            "run-time" => value.clone_into(&mut clock),
            "start-rtf" => start = time(value),
            "total" => self.claims.tests = count(value),
            "failed" | "errors" => self.claims.add_failures(value),
            _ => {}
        });
        self.start = start.or_else(|| time(&format!("{date}T{clock}")));
    }

    fn named(&self, class: &str, name: &str) -> Test {
        Test {
            suites: vec![self.assembly.clone()],
            class: named(class),
            name: named(name),
            start: self.start,
            ..Test::default()
        }
    }

    /// The name of a test starts with its class, unless it has a name for display.
    fn test(&self, attributes: &Attributes<'_>) -> Test {
        let class = attributes.get("type").unwrap_or_default();
        let name = attributes.get("name").unwrap_or_default();
        let own = name.strip_prefix(&class).and_then(|rest| rest.strip_prefix('.'));
        let mut test = self.named(&class, own.unwrap_or(&name));
        let mut result = TestResult::Canceled;
        attributes.each(|name, value| match (name, value) {
            ("time", value) => test.seconds = seconds(value, true).unwrap_or_default(),
            ("start-rtf", value) => test.start = time(value).or(test.start),
            ("result", "Pass") => result = TestResult::Passed,
            ("result", "Skip" | "NotRun") => result = TestResult::Canceled,
            // Also a result that is not known: it is not skipped without a word.
            ("result", _) => result = TestResult::Failed,
            _ => {}
        });
        test.attempts = vec![Attempt::new(test.start, test.seconds, result)];
        test
    }
}
