//! JUnit XML, in every dialect in common use.
//!
//! The format has no standard. Tools agree on the elements `testsuite` and `testcase`, but
//! attributes are often missing or unusual, so the reader ignores what it does not recognize.

mod case;
mod dialect;
mod kind;
mod suite;
#[cfg(test)]
mod tests;

use std::io::BufRead;

use assay_proto::{Fault, TestResult};

use self::{case::Case, dialect::Dialect, kind::Kind, suite::Suite};
use crate::{
    Format, Head, Retry, Sink, Test,
    names::{file_name, named},
    sink::{Amendment, Tally},
    xml::{self, Attributes, Document, Path},
};

/// The format of JUnit XML.
pub struct Junit;

impl Format for Junit {
    fn name(&self) -> &'static str {
        "JUnit XML"
    }

    fn recognizes(&self, head: &Head) -> bool {
        matches!(head.xml_root(), "testsuites" | "testsuite")
    }

    fn read(&self, file: &mut dyn BufRead, sink: Sink<'_>) -> Result<(), Fault> {
        let replaced = sink.replaced();
        let mut report = Report {
            dialect: Dialect::Other,
            suites: Vec::new(),
            runs: 0,
            case: None,
            previous: None,
            scenario: String::new(),
            has_points: false,
            sink,
        };
        let read = xml::read(self.name(), file, &replaced, &mut report);
        // A complete test counts, even if the file ends behind it.
        report.flush()?;
        read
    }
}

/// State of the reader.
struct Report<'s> {
    dialect: Dialect,
    /// The root element, if it is not a suite, and open suites, outermost first.
    suites: Vec<Suite>,
    /// Number of suites so far. Tools that repeat a test write it into the same one.
    runs: usize,
    /// The open test.
    case: Option<Case>,
    /// A complete test, which the next element may belong to.
    previous: Option<Test>,
    /// Name and place of the last scenario of Cucumber for Rust.
    scenario: String,
    /// Whether durations have decimal points.
    has_points: bool,
    /// Receives the tests.
    sink: Sink<'s>,
}

impl Document for Report<'_> {
    fn open(&mut self, path: &Path, attributes: &Attributes<'_>) -> Result<(), Fault> {
        let name = path.name();
        if path.depth() == 1 {
            self.dialect = Dialect::of(name, attributes);
        }
        if matches!(name, "testsuite" | "testsuites") {
            self.flush()?;
            let mut suite = Suite::new(attributes, self.sink.tally().tests);
            self.has_points |= suite.has_point;
            if name == "testsuites" {
                // The name of the run is often that of the tool, and its start not that of a test.
                suite.name.clear();
                suite.start = None;
                suite.is_root = true;
            }
            self.runs += usize::from(!suite.is_root);
            self.dialect = self.dialect.within(&suite, attributes);
            self.suites.push(suite);
        } else if name == "testcase" {
            self.case = Some(self.case(attributes));
        } else if let Some(case) = &mut self.case {
            case.open(path, attributes, self.has_points);
        } else if let Some(suite) = self.suites.last_mut() {
            if let Some(kind) = Kind::named(name) {
                suite.open_problem(kind.nature, attributes);
            } else if name == "property" {
                let property = attributes.property();
                suite.describe(&property);
                self.dialect = self.dialect.of_property(&property.name, suite);
            }
        }
        Ok(())
    }

    /// Adds text to the innermost element that is known: a stack trace within a failure belongs to
    /// the failure.
    fn text(&mut self, path: &Path, text: &str) {
        if let Some(case) = &mut self.case {
            case.text(path, text);
        } else if let Some(suite) = self.suites.last_mut() {
            match path.name() {
                "system-out" => suite.add_output(text),
                "system-err" => suite.add_error(text),
                name if Kind::named(name).is_some() => suite.add_text(text),
                _ => {}
            }
        }
    }

    fn close(&mut self, path: &Path) -> Result<(), Fault> {
        match path.name() {
            "testsuite" | "testsuites" => self.close_suite(),
            "testcase" => match self.case.take() {
                Some(case) => self.add(case.finish(self.dialect)),
                None => Ok(()),
            },
            name => {
                if let Some(case) = &mut self.case {
                    case.close(name);
                }
                Ok(())
            }
        }
    }
}

impl Report<'_> {
    fn case(&mut self, attributes: &Attributes<'_>) -> Case {
        let suites = self.suites.iter().map(|suite| suite.name.clone());
        let inner = self.suites.iter().rev();
        let file = inner.clone().map(|suite| &suite.file).find(|file| !file.is_empty());
        let mut test = Test {
            suites: suites.filter(|name| !name.is_empty()).collect(),
            file: file.cloned().unwrap_or_default(),
            start: inner.clone().find_map(|suite| suite.start),
            retry: self.dialect.retry(),
            run: if self.dialect.retry() == Retry::Never { 0 } else { self.runs },
            ..Test::default()
        };
        attributes.each(|name, value| match name {
            "classname" => test.class = named(value),
            "name" => test.name = named(value),
            "file" | "filepath" if !value.is_empty() => test.file = file_name(value),
            _ => {}
        });
        if self.dialect == Dialect::CucumberRs {
            // Another row of the same outline has another place.
            let is_again = self.scenario == test.name;
            test.retry = if is_again { Retry::AfterFailure } else { Retry::Never };
            self.scenario.clone_from(&test.name);
        }
        self.dialect.identify(&mut test, self.suites.last());
        let mut case = Case::new(test);
        case.describe(attributes, &mut self.has_points);
        case
    }

    /// Passes a test on, or keeps it if the dialect reports more about it in the next element.
    fn add(&mut self, test: Test) -> Result<(), Fault> {
        if let Some(suite) = self.suites.last_mut() {
            let failed = test.attempts.iter().any(|attempt| !attempt.problems.is_empty());
            let skipped = test.result() == TestResult::Canceled;
            let (failed, skipped) = (usize::from(failed), usize::from(skipped));
            // Surefire counts attempts.
            let tests = test.attempts.len();
            suite.found.add(Tally { tests, failed, skipped, ..Tally::default() });
        }
        if self.dialect != Dialect::Pytest {
            return self.sink.add(test);
        }
        match &mut self.previous {
            Some(previous) if dialect::is_teardown(previous, &test) => {
                dialect::add_teardown(previous, test);
                Ok(())
            }
            _ => {
                self.flush()?;
                self.previous = Some(test);
                Ok(())
            }
        }
    }

    fn flush(&mut self) -> Result<(), Fault> {
        self.previous.take().map_or(Ok(()), |test| self.sink.add(test))
    }

    /// Passes on the failures of a suite, its output, and what contradicts its numbers.
    fn close_suite(&mut self) -> Result<(), Fault> {
        self.flush()?;
        let owner = Suite::owner(&self.suites);
        let Some(mut suite) = self.suites.pop() else { return Ok(()) };
        let problems = suite.take_problems();
        if !problems.is_empty() {
            suite.found.add(Tally { failed: 1, ..Tally::default() });
            self.sink
                .add(Test { attempts: vec![crate::Attempt::with(problems)], ..owner.clone() })?;
        }
        let claims = self.dialect.reliable(&suite);
        let found = self.sink.compare(suite.found, claims, &owner)?;
        if !suite.output.trim().is_empty() {
            self.sink.amend(suite.first, Amendment::Output(suite.output))?;
        }
        if let Some(outer) = self.suites.last_mut() {
            outer.found.add(found);
        }
        Ok(())
    }
}
