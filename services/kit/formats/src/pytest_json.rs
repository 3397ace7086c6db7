//! The report of pytest-json-report: collectors, and tests with their phases.

mod outcome;

use std::io::BufRead;

use assay_proto::{Fault, TestResult, Timestamp};
use serde::{
    Deserialize,
    de::{DeserializeSeed, IgnoredAny, MapAccess, SeqAccess},
};

use self::outcome::{Reported, explained};
use crate::{
    Attempt, Format, Head, Nature, Sink, Test,
    durations::duration,
    json::{self, Array, Elements, Members, Name, Number, Object, Output, Text},
    limits::TEXT,
    sink::{Claims, Tally},
    times::since_1970,
    values::pytest_names,
};

/// The format of pytest-json-report.
pub struct PytestJson;

impl Format for PytestJson {
    fn name(&self) -> &'static str {
        "pytest JSON"
    }

    fn recognizes(&self, head: &Head) -> bool {
        head.object().is_some_and(|json| json.has(1, "exitcode") && json.has(1, "created"))
    }

    fn read(&self, file: &mut dyn BufRead, sink: Sink<'_>) -> Result<(), Fault> {
        json::read(self.name(), file, sink, |json, output| {
            let (code, summary, created, duration, tests) = Default::default();
            let mut report = Report { code, summary, created, duration, tests, output };
            Object(&mut report).deserialize(json)?;
            report.finish()
        })
    }
}

/// State of the reader.
struct Report<'o, 's> {
    /// Exit code of pytest.
    code: Number,
    summary: Summary,
    /// Time of the end of the run, in seconds since 1970, and its duration in seconds.
    created: Number,
    duration: Number,
    /// Number of tests without collectors.
    tests: usize,
    output: &'o mut Output<'s>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Summary {
    total: Number,
    failed: Number,
    error: Number,
}

impl From<Summary> for Claims {
    fn from(Summary { total, failed, error }: Summary) -> Self {
        let numbers = [failed, error].into_iter().filter_map(Number::count);
        Self { tests: total.count(), failures: Some(numbers.sum()), skipped: None }
    }
}

/// A file, class or folder in which tests are collected.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Collector {
    nodeid: Name,
    outcome: Text<16>,
    longrepr: Text<TEXT>,
}

impl Members for Report<'_, '_> {
    fn member<'de, A: MapAccess<'de>>(&mut self, name: &str, map: &mut A) -> Result<(), A::Error> {
        match name {
            "created" => self.created = map.next_value()?,
            "duration" => self.duration = map.next_value()?,
            "exitcode" => self.code = map.next_value()?,
            "summary" => self.summary = map.next_value()?,
            "collectors" => return map.next_value_seed(Array(&mut Collectors(self))),
            "tests" => return map.next_value_seed(Array(self)),
            _ => _ = map.next_value::<IgnoredAny>()?,
        }
        Ok(())
    }
}

impl Elements for Report<'_, '_> {
    fn element<'de, A: SeqAccess<'de>>(&mut self, sequence: &mut A) -> Result<bool, A::Error> {
        let Some(reported) = sequence.next_element::<Reported>()? else { return Ok(false) };
        self.tests += 1;
        let start = self.start();
        self.output.add(reported.into_test(start))?;
        Ok(true)
    }
}

struct Collectors<'r, 'o, 's>(&'r mut Report<'o, 's>);

impl Elements for Collectors<'_, '_, '_> {
    fn element<'de, A: SeqAccess<'de>>(&mut self, sequence: &mut A) -> Result<bool, A::Error> {
        let Some(collector) = sequence.next_element::<Collector>()? else { return Ok(false) };
        if let Some(test) = collector.into_test() {
            self.0.output.add(test)?;
        }
        Ok(true)
    }
}

impl Collector {
    /// Returns the entry of a collector that failed or was skipped. JUnit reports have it, too.
    fn into_test(self) -> Option<Test> {
        let attempt = match self.outcome.0.as_str() {
            "failed" => Attempt::with(vec![explained(Nature::Error, "", &self.longrepr.0)]),
            "skipped" => Attempt {
                result: TestResult::Canceled,
                reason: outcome::reason(&self.longrepr.0),
                ..Attempt::default()
            },
            _ => return None,
        };
        let attempts = vec![attempt];
        let test = match pytest_names(&self.nodeid.0) {
            Some((class, name)) => Test { class, name, ..Test::default() },
            None if self.nodeid.0.is_empty() => Test::default().of_run(),
            None => {
                let file = self.nodeid.0.as_str();
                let id = file.strip_suffix(".py").unwrap_or(file).replace('/', ".");
                Test { name: id.clone(), id, ..Test::default() }
            }
        };
        Some(Test { attempts, ..test })
    }
}

impl Report<'_, '_> {
    /// Returns the start of the run. Tests have none of their own.
    fn start(&self) -> Option<Timestamp> {
        let duration = duration(self.duration.0);
        since_1970(self.created.0.map(|created| created - duration))
    }

    /// Passes on what contradicts the numbers and the exit code.
    fn finish<E: serde::de::Error>(self) -> Result<(), E> {
        let Self { code, summary, tests, output, .. } = self;
        output.with(|sink| {
            let found = Tally { tests, ..sink.tally() };
            sink.compare(found, summary.into(), &Test::default().of_run())?;
            let (nature, message) = match code.count() {
                None | Some(0) => return Ok(()),
                _ if sink.tally().red > 0 => return Ok(()),
                Some(2) => (Nature::Abortion, "The run was interrupted.".to_owned()),
                Some(3) => (Nature::Error, "pytest had an internal error.".to_owned()),
                Some(5) => (Nature::Error, "pytest found no tests.".to_owned()),
                Some(code) => {
                    let message = format!(
                        "pytest ended with exit code {code}, but none of its tests failed."
                    );
                    (Nature::Error, message)
                }
            };
            sink.fail_run(nature, &message)
        })
    }
}
