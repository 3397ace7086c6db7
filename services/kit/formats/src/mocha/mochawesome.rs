//! The JSON report of Mochawesome: nested suites with hooks and tests.

use std::io::BufRead;

use assay_proto::{Fault, TestResult};
use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, SeqAccess};

use super::{Entry, Stats};
use crate::{
    Format, Head, Sink, Test,
    json::{self, Array, Elements, Members, Object, Output},
    limits::OUTPUT,
    sink::{Claims, Tally},
    texts::keep_end,
    times::time,
};

/// The format of Mochawesome.
pub struct Mochawesome;

impl Format for Mochawesome {
    fn name(&self) -> &'static str {
        "Mochawesome JSON"
    }

    fn recognizes(&self, head: &Head) -> bool {
        head.object().is_some_and(|json| json.has(1, "stats") && json.has(1, "results"))
    }

    fn read(&self, file: &mut dyn BufRead, sink: Sink<'_>) -> Result<(), Fault> {
        json::read(self.name(), file, sink, |json, output| {
            let (stats, tests) = Default::default();
            let mut report = Report { stats, tests, output };
            Object(&mut report).deserialize(json)?;
            let Report { stats, tests, output } = report;
            let failures = stats.failures.count().unwrap_or_default()
                + stats.other.count().unwrap_or_default();
            let (tests_run, failures) = (stats.tests.count(), Some(failures));
            let claims = Claims { tests: tests_run, failures, ..Claims::default() };
            output.with(|sink| {
                let found = Tally { tests, ..sink.tally() };
                sink.compare(found, claims, &Test::default().of_run()).map(drop)
            })
        })
    }
}

/// State of the reader: the document, or a suite in it.
struct Report<'o, 's> {
    stats: Stats,
    /// Number of tests without hooks.
    tests: usize,
    output: &'o mut Output<'s>,
}

impl Members for Report<'_, '_> {
    fn member<'de, A: MapAccess<'de>>(&mut self, name: &str, map: &mut A) -> Result<(), A::Error> {
        match name {
            "stats" => {
                self.stats = map.next_value()?;
                Ok(())
            }
            "results" | "suites" => map.next_value_seed(Array(&mut Suites(self))),
            "beforeHooks" | "afterHooks" => {
                map.next_value_seed(Array(&mut Runs { report: self, is_hook: true }))
            }
            "tests" => map.next_value_seed(Array(&mut Runs { report: self, is_hook: false })),
            _ => map.next_value::<IgnoredAny>().map(drop),
        }
    }
}

struct Suites<'r, 'o, 's>(&'r mut Report<'o, 's>);

impl Elements for Suites<'_, '_, '_> {
    fn element<'de, A: SeqAccess<'de>>(&mut self, sequence: &mut A) -> Result<bool, A::Error> {
        let suite = sequence.next_element_seed(Object(self.0))?;
        Ok(suite.is_some())
    }
}

struct Runs<'r, 'o, 's> {
    report: &'r mut Report<'o, 's>,
    is_hook: bool,
}

impl Elements for Runs<'_, '_, '_> {
    fn element<'de, A: SeqAccess<'de>>(&mut self, sequence: &mut A) -> Result<bool, A::Error> {
        let Some(mut entry) = sequence.next_element::<Entry>()? else { return Ok(false) };
        let Report { stats, tests, output } = &mut *self.report;
        let (result, reason) = match entry.state.0.as_str() {
            "passed" => (TestResult::Passed, ""),
            "pending" => (TestResult::Canceled, ""),
            "failed" => (TestResult::Failed, ""),
            _ if entry.fail.0 => (TestResult::Failed, ""),
            _ => (TestResult::Canceled, "The test was not run."),
        };
        if self.is_hook && result != TestResult::Failed {
            return Ok(true);
        }
        *tests += usize::from(!self.is_hook);
        let context = std::mem::take(&mut entry.context.0);
        let mut test = entry.into_test(result, time(&stats.start.0));
        if let Some(attempt) = test.attempts.last_mut() {
            reason.clone_into(&mut attempt.reason);
            keep_end(&mut attempt.output, &context, OUTPUT);
        }
        output.add(test)?;
        Ok(true)
    }
}
