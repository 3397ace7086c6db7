//! The JSON reports of Mocha itself and of Mochawesome. A hook that fails is an entry like a test.
//!
//! Titles include those of the suites, as in TAP and CTRF reports of Mocha.

mod mochawesome;

use std::io::BufRead;

use assay_proto::{Fault, TestResult, Timestamp};
use serde::{
    Deserialize,
    de::{DeserializeSeed, IgnoredAny, MapAccess, SeqAccess},
};

pub use self::mochawesome::Mochawesome;
use crate::{
    Attempt, Format, Head, Nature, Problem, Sink, Test,
    durations::duration,
    json::{self, Array, Elements, Flag, Members, Name, Number, Object, Output, Text},
    limits::{MESSAGE, MOST_ATTEMPTS, OUTPUT, TEXT},
    sink::Claims,
    times::time,
    values::{javascript_problem, without_colours},
};

/// The format of Mocha's JSON reports.
pub struct Mocha;

impl Format for Mocha {
    fn name(&self) -> &'static str {
        "Mocha JSON"
    }

    fn recognizes(&self, head: &Head) -> bool {
        head.object().is_some_and(|json| {
            let has_lists = ["tests", "pending", "failures", "passes"];
            json.has(1, "stats")
                && json.has(2, "suites")
                && has_lists.iter().any(|name| json.has(1, name))
        })
    }

    fn read(&self, file: &mut dyn BufRead, sink: Sink<'_>) -> Result<(), Fault> {
        json::read(self.name(), file, sink, |json, output| {
            let (stats, result) = (Stats::default(), TestResult::Passed);
            let mut report = Report { stats, result, output };
            Object(&mut report).deserialize(json)?;
            let Report { stats, output, .. } = report;
            let numbers = [stats.passes, stats.pending, stats.failures].map(Number::count);
            let tests = numbers.into_iter().flatten().reduce(|sum, number| sum + number);
            let failures = stats.failures.count();
            let claims = Claims { tests, failures, ..Claims::default() };
            output.with(|sink| {
                let found = sink.tally();
                sink.compare(found, claims, &Test::default().of_run()).map(drop)
            })
        })
    }
}

/// Numbers of entries, which Mocha and Mochawesome count differently.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Stats {
    tests: Number,
    passes: Number,
    pending: Number,
    failures: Number,
    /// Hooks that failed, if they are not in the number of failures.
    other: Number,
    start: Text<64>,
}

/// State of the reader: the document, or the list of entries with this result.
struct Report<'o, 's> {
    stats: Stats,
    result: TestResult,
    output: &'o mut Output<'s>,
}

impl Members for Report<'_, '_> {
    fn member<'de, A: MapAccess<'de>>(&mut self, name: &str, map: &mut A) -> Result<(), A::Error> {
        // The list of all tests lacks hooks and results.
        self.result = match name {
            "passes" => TestResult::Passed,
            "failures" => TestResult::Failed,
            "pending" => TestResult::Canceled,
            "stats" => {
                self.stats = map.next_value()?;
                return Ok(());
            }
            _ => return map.next_value::<IgnoredAny>().map(drop),
        };
        map.next_value_seed(Array(self))
    }
}

impl Elements for Report<'_, '_> {
    fn element<'de, A: SeqAccess<'de>>(&mut self, sequence: &mut A) -> Result<bool, A::Error> {
        let Some(entry) = sequence.next_element::<Entry>()? else { return Ok(false) };
        let start = time(&self.stats.start.0);
        self.output.add(entry.into_test(self.result, start))?;
        Ok(true)
    }
}

/// A test or a hook.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Entry {
    title: Name,
    full_title: Name,
    /// Milliseconds.
    duration: Number,
    /// Number of attempts before the last one.
    current_retry: Number,
    err: Failure,
    /// `passed`, `failed` or `pending`, in reports of Mochawesome; absent if it was not run.
    state: Text<16>,
    fail: Flag,
    /// Values that the test added to the report of Mochawesome, as JSON.
    context: Text<OUTPUT>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Failure {
    message: Text<MESSAGE>,
    stack: Text<TEXT>,
    /// The stack in reports of Mochawesome.
    estack: Text<TEXT>,
}

impl Failure {
    fn into_problem(self) -> Problem {
        let stack = if self.stack.0.is_empty() { self.estack.0 } else { self.stack.0 };
        let mut problem = javascript_problem(Nature::Failure, &stack);
        if problem.message.is_empty() {
            problem.message = without_colours(&self.message.0);
        }
        if problem.message.is_empty() {
            "The test failed without a reason.".clone_into(&mut problem.message);
        }
        problem
    }
}

impl Entry {
    fn into_test(self, result: TestResult, start: Option<Timestamp>) -> Test {
        let name = if self.full_title.0.is_empty() { self.title.0 } else { self.full_title.0 };
        let seconds = duration(self.duration.0.map(|milliseconds| milliseconds / 1e3));
        let mut test = Test { name, start, seconds, ..Test::default() };
        let earlier = self.current_retry.count().unwrap_or_default().min(MOST_ATTEMPTS);
        (0..earlier).for_each(|_| test.push(Attempt::unreported()));
        let failed = Nature::of(result).map(|_| self.err.into_problem());
        let problems = failed.into_iter().collect();
        test.push(Attempt { start, seconds, result, problems, ..Attempt::default() });
        test
    }
}
