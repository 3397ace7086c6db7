//! The JSON report of Playwright: files, suites, specs, and a test for each project of a spec.

pub(crate) mod blob;
mod outcome;

use std::io::BufRead;

use assay_proto::Fault;
use serde::{
    Deserialize,
    de::{DeserializeSeed, Error, IgnoredAny, MapAccess, SeqAccess},
};

use self::outcome::{Failure, Spec};
use crate::{
    Format, Head, Nature, Sink, Test,
    json::{self, Array, Elements, List, Members, Name, Number, Object, Output},
    limits::MOST_PROBLEMS,
    sink::Claims,
};

/// The format of Playwright's JSON reports.
pub struct Playwright;

impl Format for Playwright {
    fn name(&self) -> &'static str {
        "Playwright JSON"
    }

    fn recognizes(&self, head: &Head) -> bool {
        head.object().is_some_and(|json| {
            let configures = ["configFile", "rootDir", "forbidOnly", "fullyParallel"];
            (json.has(1, "config") && configures.iter().any(|name| json.has(2, name)))
                || (json.has(1, "suites") && json.has(3, "specs"))
        })
    }

    fn read(&self, file: &mut dyn BufRead, sink: Sink<'_>) -> Result<(), Fault> {
        json::read(self.name(), file, sink, |json, output| {
            let (titles, failures, claims) = Default::default();
            let mut report = Report { titles, failures, claims, output };
            Object(&mut report).deserialize(json)?;
            report.finish()
        })
    }
}

/// State of the reader: the document, or a suite in it.
struct Report<'o, 's> {
    /// Titles of the open suites, outermost first. The first one is a file.
    titles: Vec<String>,
    /// Failures outside of tests, such as those of the global setup and teardown.
    failures: Vec<Failure>,
    claims: Claims,
    output: &'o mut Output<'s>,
}

/// Numbers of tests by their outcome.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Stats {
    expected: Number,
    skipped: Number,
    unexpected: Number,
    flaky: Number,
}

impl From<Stats> for Claims {
    fn from(Stats { expected, skipped, unexpected, flaky }: Stats) -> Self {
        let numbers = [expected, skipped, unexpected, flaky].map(Number::count);
        let tests = numbers.into_iter().flatten().reduce(|sum, number| sum + number);
        Self { tests, failures: unexpected.count(), skipped: None }
    }
}

impl Report<'_, '_> {
    /// Passes on what failed outside of tests, and compares the numbers.
    fn finish<E: Error>(self) -> Result<(), E> {
        let Self { failures, claims, output, .. } = self;
        output.with(|sink| {
            if failures.is_empty() {
                let found = sink.tally();
                return sink.compare(found, claims, &Test::default().of_run()).map(drop);
            }
            let problems = failures.into_iter().map(|failure| failure.into_problem(Nature::Error));
            let attempts = vec![crate::Attempt::with(problems.collect())];
            sink.add(Test { attempts, ..Test::default().of_run() })
        })
    }
}

impl Members for Report<'_, '_> {
    fn member<'de, A: MapAccess<'de>>(&mut self, name: &str, map: &mut A) -> Result<(), A::Error> {
        match name {
            "suites" => map.next_value_seed(Array(&mut Suites(self))),
            "specs" => map.next_value_seed(Array(&mut Specs(self))),
            "errors" => {
                self.failures = map.next_value::<List<Failure, MOST_PROBLEMS>>()?.0;
                Ok(())
            }
            "stats" => {
                self.claims = map.next_value::<Stats>()?.into();
                Ok(())
            }
            "title" => {
                let Name(title) = map.next_value()?;
                let Some(last) = self.titles.last_mut() else { return Ok(()) };
                *last = title;
                Ok(())
            }
            _ => map.next_value::<IgnoredAny>().map(drop),
        }
    }
}

struct Suites<'r, 'o, 's>(&'r mut Report<'o, 's>);

impl Elements for Suites<'_, '_, '_> {
    fn element<'de, A: SeqAccess<'de>>(&mut self, sequence: &mut A) -> Result<bool, A::Error> {
        self.0.titles.push(String::new());
        let suite = sequence.next_element_seed(Object(self.0));
        self.0.titles.pop();
        suite.map(|suite| suite.is_some())
    }
}

struct Specs<'r, 'o, 's>(&'r mut Report<'o, 's>);

impl Elements for Specs<'_, '_, '_> {
    fn element<'de, A: SeqAccess<'de>>(&mut self, sequence: &mut A) -> Result<bool, A::Error> {
        let Some(spec) = sequence.next_element::<Spec>()? else { return Ok(false) };
        if self.0.titles.last().is_none_or(String::is_empty) {
            // The titles identify the tests.
            return Err(A::Error::custom("the title of a suite must be in front of its specs"));
        }
        for test in spec.into_tests(&self.0.titles) {
            self.0.output.add(test)?;
        }
        Ok(true)
    }
}
