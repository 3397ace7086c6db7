//! The `output.json` of Robot Framework, which has the meaning of the `output.xml`.
//!
//! Robot Framework writes the name of a suite behind its tests, and Rebot in front of them. Tests wait
//! for the names of all suites around them, in bounded memory.

mod body;

use std::{io::BufRead, rc::Rc};

use assay_proto::Fault;
use serde::{
    Deserialize,
    de::{DeserializeSeed, IgnoredAny, MapAccess, SeqAccess},
};

use self::body::Open;
use super::{merged, result, teardown};
use crate::{
    Attempt, Format, Head, Nature, Property, Sink, Test,
    durations::duration,
    held::Held,
    json::{self, Array, Elements, List, Members, Name, Number, Object, Output, Text},
    limits::{MESSAGE, MOST_LABELS, TEXT},
    names::{named, shortened},
    sink::Claims,
    times::time,
};

/// The format of Robot Framework's JSON.
pub struct RobotJson;

impl Format for RobotJson {
    fn name(&self) -> &'static str {
        "Robot Framework JSON"
    }

    fn recognizes(&self, head: &Head) -> bool {
        head.object().is_some_and(|json| json.has(1, "generator") && json.has(1, "rpa"))
    }

    fn read(&self, file: &mut dyn BufRead, sink: Sink<'_>) -> Result<(), Fault> {
        json::read(self.name(), file, sink, |json, output| {
            let (suites, held, claims) = Default::default();
            let mut report = Report { suites, held, claims, output };
            Object(&mut report).deserialize(json)?;
            let Report { claims, output, .. } = report;
            output.with(|sink| {
                let found = sink.tally();
                sink.compare(found, claims, &Test::default().of_run()).map(drop)
            })
        })
    }
}

/// A suite while its object is open.
#[derive(Default)]
struct Suite {
    name: Option<Rc<str>>,
    status: String,
    message: String,
    /// Number of tests in front of it, and of those of them that wait.
    first: usize,
    held: usize,
}

/// State of the reader: the document, or a suite in it.
struct Report<'o, 's> {
    suites: Vec<Suite>,
    /// Tests with the names of suites around them that closed, innermost first.
    held: Held<Vec<Rc<str>>>,
    claims: Claims,
    output: &'o mut Output<'s>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Statistics {
    total: Total,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Total {
    pass: Number,
    fail: Number,
    skip: Number,
}

impl From<Total> for Claims {
    fn from(Total { pass, fail, skip }: Total) -> Self {
        let numbers = [pass, fail, skip].map(Number::count);
        let tests = numbers.into_iter().flatten().reduce(|sum, number| sum + number);
        Self { tests, failures: fail.count(), skipped: None }
    }
}

impl Members for Report<'_, '_> {
    fn member<'de, A: MapAccess<'de>>(&mut self, name: &str, map: &mut A) -> Result<(), A::Error> {
        let suite = self.suites.last_mut();
        match (name, suite) {
            ("suite", None) => {
                self.open();
                map.next_value_seed(Object(self))?;
                self.close()
            }
            ("statistics", None) => {
                self.claims = map.next_value::<Statistics>()?.total.into();
                Ok(())
            }
            ("name", Some(suite)) => {
                let Text::<MESSAGE>(name) = map.next_value()?;
                suite.name = Some(shortened(name.trim()).into());
                Ok(())
            }
            ("status", Some(suite)) => {
                suite.status = map.next_value::<Text<16>>()?.0;
                Ok(())
            }
            ("message", Some(suite)) => {
                suite.message = map.next_value::<Text<MESSAGE>>()?.0;
                Ok(())
            }
            ("suites", Some(_)) => map.next_value_seed(Array(&mut Suites(self))),
            ("tests", Some(_)) => map.next_value_seed(Array(&mut Tests(self))),
            _ => map.next_value::<IgnoredAny>().map(drop),
        }
    }
}

struct Suites<'r, 'o, 's>(&'r mut Report<'o, 's>);

impl Elements for Suites<'_, '_, '_> {
    fn element<'de, A: SeqAccess<'de>>(&mut self, sequence: &mut A) -> Result<bool, A::Error> {
        self.0.open();
        if sequence.next_element_seed(Object(self.0))?.is_none() {
            self.0.suites.pop();
            return Ok(false);
        }
        self.0.close()?;
        Ok(true)
    }
}

struct Tests<'r, 'o, 's>(&'r mut Report<'o, 's>);

impl Elements for Tests<'_, '_, '_> {
    fn element<'de, A: SeqAccess<'de>>(&mut self, sequence: &mut A) -> Result<bool, A::Error> {
        let mut reported = Reported::default();
        if sequence.next_element_seed(Object(&mut reported))?.is_none() {
            return Ok(false);
        }
        self.0.add(reported.into_test())?;
        Ok(true)
    }
}

impl Report<'_, '_> {
    fn open(&mut self) {
        let held = self.held.len();
        let first = self.output.sink.tally().tests + held;
        self.suites.push(Suite { first, held, ..Suite::default() });
    }

    /// Passes a test on, or lets it wait for the names of suites.
    fn add<E: serde::de::Error>(&mut self, mut test: Test) -> Result<(), E> {
        let names: Option<Vec<&str>> =
            self.suites.iter().map(|suite| suite.name.as_deref()).collect();
        if let Some(names) = names.filter(|_| self.held.len() == 0) {
            complete(&mut test, names.into_iter());
            return self.output.add(test);
        }
        let held = self.held.push(Vec::new(), test, RobotJson.name());
        held.map_err(|fault| self.output.stop(fault))
    }

    /// Completes the tests of a suite, whose teardown may let them fail.
    fn close<E: serde::de::Error>(&mut self) -> Result<(), E> {
        let Some(suite) = self.suites.pop() else { return Ok(()) };
        let amendment = teardown(&suite.message, suite.status == "FAIL");
        let name = suite.name.unwrap_or_default();
        for (names, test) in self.held.since(suite.held) {
            names.push(Rc::clone(&name));
            if let Some(amendment) = &amendment {
                amendment.apply(test.attempts.last_mut().into_iter());
            }
        }
        let (held, is_outermost) = (&mut self.held, self.suites.is_empty());
        self.output.with(|sink| {
            if let Some(amendment) = amendment.filter(|_| suite.first < sink.tally().tests) {
                sink.amend(suite.first, amendment)?;
            }
            if is_outermost {
                held.release(|names, test| complete(test, names.iter().rev().map(|n| &**n)), sink)?;
            }
            Ok(())
        })
    }
}

/// Completes the identity of a test by the names of the suites around it, outermost first.
fn complete<'n>(test: &mut Test, names: impl Iterator<Item = &'n str>) {
    test.suites = names.map(ToOwned::to_owned).collect();
    test.class = named(&test.suites.join("."));
}

/// A test while its object is open.
#[derive(Default)]
struct Reported {
    name: Name,
    tags: List<Text<MESSAGE>, MOST_LABELS>,
    status: Text<16>,
    /// It can have the messages of several runs.
    message: Text<TEXT>,
    start: Text<64>,
    /// Seconds.
    elapsed: Number,
    /// Steps and output.
    attempt: Attempt,
}

impl Members for Reported {
    fn member<'de, A: MapAccess<'de>>(&mut self, name: &str, map: &mut A) -> Result<(), A::Error> {
        match name {
            "name" => self.name = map.next_value()?,
            "tags" => self.tags = map.next_value()?,
            "status" => self.status = map.next_value()?,
            "message" => self.message = map.next_value()?,
            "start_time" => self.start = map.next_value()?,
            "elapsed_time" => self.elapsed = map.next_value()?,
            "setup" | "body" | "teardown" => {
                return Open::new(&mut self.attempt, 0).within(name, map);
            }
            _ => _ = map.next_value::<IgnoredAny>()?,
        }
        Ok(())
    }
}

impl Reported {
    fn into_test(self) -> Test {
        let (start, seconds) = (time(&self.start.0), duration(self.elapsed.0));
        let result = result(&self.status.0);
        let (message, mut attempts) = merged::separate(self.message.0.trim());
        let mut attempt = Attempt { start, seconds, result, ..self.attempt };
        match Nature::of(result) {
            Some(_) => {
                attempt.problems = Attempt::new(start, seconds, result).problems;
                attempt
                    .problems
                    .iter_mut()
                    .for_each(|problem| problem.message.clone_from(&message));
            }
            None if result == assay_proto::TestResult::Canceled => attempt.reason = message,
            None => {}
        }
        let labels = self.tags.0.iter().map(|tag| Property::new("tag", &tag.0)).collect();
        attempts.push(attempt);
        Test { name: self.name.0, labels, start, seconds, attempts, ..Test::default() }
    }
}
