//! JUnit XML, in every dialect in common use.
//!
//! The format has no standard. Tools agree on the elements `testsuite` and `testcase`, but
//! attributes are often missing or unusual, so the reader ignores what it does not recognize.

mod case;
mod dialect;
#[cfg(test)]
mod tests;

use std::io::BufRead;

use assay_proto::{Fault, Timestamp};

use self::{case::Case, dialect::Dialect};
use crate::{
    Format, Head, Sink, Test,
    limits::MESSAGE,
    texts::keep_beginning,
    values::{shortened, time},
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
        let mut report = Report {
            dialect: Dialect::Other,
            suites: Vec::new(),
            case: None,
            previous: None,
            sink,
        };
        xml::read(self.name(), file, &mut report)?;
        report.flush()
    }
}

#[derive(Default)]
struct Suite {
    name: String,
    start: Option<Timestamp>,
    host: String,
}

impl Suite {
    fn new(attributes: &Attributes<'_>) -> Self {
        let mut suite = Self::default();
        attributes.each(|name, value| match name {
            // Shortened because each of its tests has a copy.
            "name" => suite.name = shortened(value.trim()),
            "timestamp" => suite.start = time(value),
            "hostname" => suite.host = shortened(value.trim()),
            _ => {}
        });
        suite
    }
}

/// State of the reader.
struct Report<'s> {
    dialect: Dialect,
    /// Open suites, outermost first.
    suites: Vec<Suite>,
    /// The open test.
    case: Option<Case>,
    /// A complete test, which the next one may be a further attempt of.
    previous: Option<Test>,
    /// Receives the tests.
    sink: Sink<'s>,
}

impl Document for Report<'_> {
    fn open(&mut self, path: &Path, attributes: &Attributes<'_>) -> Result<(), Fault> {
        let name = path.name();
        if path.depth() == 1 {
            self.dialect = Dialect::of(name, attributes);
        }
        if name == "testsuite" {
            let suite = Suite::new(attributes);
            if self.suites.is_empty() {
                self.dialect = self.dialect.within(&suite.name);
            }
            self.suites.push(suite);
        } else if name == "testcase" {
            self.case = Some(self.case(attributes));
        } else if let Some(case) = &mut self.case {
            case.open(path, attributes);
        }
        Ok(())
    }

    /// Adds text to the innermost element that is known: a stack trace within a failure belongs to
    /// the failure.
    fn text(&mut self, path: &Path, text: &str) {
        if let Some(case) = &mut self.case {
            case.text(path, text);
        }
    }

    fn close(&mut self, path: &Path) -> Result<(), Fault> {
        match path.name() {
            "testsuite" => {
                self.suites.pop();
                self.flush()
            }
            "testcase" => match self.case.take() {
                Some(case) => self.add(case.finish()),
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
    fn case(&self, attributes: &Attributes<'_>) -> Case {
        let mut test = Test {
            suites: self.suites.iter().map(|suite| suite.name.clone()).collect(),
            start: self.suites.iter().rev().find_map(|suite| suite.start),
            ..Test::default()
        };
        attributes.each(|name, value| match name {
            "classname" => keep_beginning(&mut test.class, value.trim(), MESSAGE),
            "name" => keep_beginning(&mut test.name, value.trim(), MESSAGE),
            _ => {}
        });
        let host = self.suites.last().map_or("", |suite| &suite.host);
        self.dialect.identify(&mut test, host);
        let mut case = Case::new(test);
        case.describe(attributes);
        case
    }

    /// Passes a test on, or keeps it if the dialect reports further attempts as tests of the same
    /// name.
    fn add(&mut self, test: Test) -> Result<(), Fault> {
        if self.dialect != Dialect::Pytest {
            return (self.sink)(test);
        }
        match &mut self.previous {
            Some(previous) if dialect::is_same(previous, &test) => {
                dialect::join(previous, test);
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
        self.previous.take().map_or(Ok(()), &mut self.sink)
    }
}
