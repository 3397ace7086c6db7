//! Blob reports of Playwright: a file with an event on each line, and attachments beside it.
//!
//! The file is read twice. The first pass counts the results of each test, so that the second one passes
//! each test on after its last result.

mod declared;
mod running;

use std::{
    collections::HashMap,
    io::{BufRead, BufReader},
};

use assay_proto::Fault;
use serde::{
    Deserialize,
    de::{DeserializeSeed, IgnoredAny, MapAccess},
};

use self::{
    declared::{Declared, Project},
    running::Run,
};
use super::outcome::Failure;
use crate::{
    Format, Head, Nature, Problem, Receiver, Sink, Test,
    allure::{Files, is_result},
    decoded::{Decoded, Replaced, encoding_of},
    fault::excessive,
    held,
    json::{self, Lenient, Members, Object, Output, Text, allowance},
    limits::MOST_PROBLEMS,
    sink::Passed,
};

/// Maximum number of projects. Tests of further ones lack a name.
const MOST_PROJECTS: usize = 10_000;

/// Name of the file with the events.
const EVENTS: &str = "report.jsonl";

/// The format of Playwright's blob reports.
pub struct PlaywrightBlob;

impl Format for PlaywrightBlob {
    fn name(&self) -> &'static str {
        "Playwright blob"
    }

    fn recognizes(&self, head: &Head) -> bool {
        let is_event = |json: &json::Outline| json.has(1, "method") && json.has(1, "params");
        head.object().is_some_and(is_event) && head.lines().next().is_some_and(is_metadata)
    }

    /// Refuses a single file: attachments are in others. [`crate::archive::read`] reads all of them.
    fn read(&self, _: &mut dyn BufRead, _: Sink<'_>) -> Result<(), Fault> {
        let reason = "the file was recognized as a part of a blob report of Playwright, which has \
            attachments in other files: send the zip archive that Playwright writes";
        Err(Fault::Refused { code: "several_files", reason: reason.to_owned() })
    }
}

fn is_metadata(line: &[u8]) -> bool {
    line.windows(b"onBlobReportMetadata".len()).any(|part| part == b"onBlobReportMetadata")
}

/// Returns whether a set of files is a blob report.
pub(crate) fn is_report(files: &mut dyn Files) -> bool {
    let sizes = files.sizes();
    sizes.contains_key(EVENTS) && !sizes.keys().any(|name| is_result(name))
}

/// Reads the report in a set of files.
pub(crate) fn read(files: &mut dyn Files, receiver: impl Receiver) -> Result<Vec<String>, Fault> {
    let mut passed = Passed::to(receiver);
    let mut counts = Counts::default();
    {
        let mut file = open(files, &Replaced::default())?;
        let mut json =
            serde_json::Deserializer::from_reader(Lenient::new(&mut *file, Replaced::default()));
        // The second pass reports what is broken.
        while json.end().is_err() && Object(&mut counts).deserialize(&mut json).is_ok() {
            counts.check()?;
        }
    }
    let replaced = crate::sink::Output::replaced(&passed);
    let mut file = open(files, &replaced)?;
    json::read(PlaywrightBlob.name(), &mut *file, &mut passed, |json, output| {
        let (projects, tests, run, errors, end, is_red) = Default::default();
        let counts = counts.of_tests;
        let mut report = Report { counts, projects, tests, run, errors, end, is_red, output };
        while json.end().is_err() {
            allowance::renew();
            let mut event = Event { method: String::new(), report: &mut report };
            Object(&mut event).deserialize(&mut *json)?;
        }
        report.finish()
    })?;
    passed.finish()
}

/// Opens the file with the events, as UTF-8.
fn open<'f>(files: &'f mut dyn Files, replaced: &Replaced) -> Result<Box<dyn BufRead + 'f>, Fault> {
    let mut file = BufReader::new(files.open(EVENTS)?);
    let head = file.fill_buf().map_err(|error| {
        Fault::Malformed(format!("the file {EVENTS} of the archive is unreadable: {error}"))
    })?;
    let encoding = encoding_of(head);
    Ok(Box::new(Decoded::new(file, encoding, replaced.clone())))
}

/// Numbers of results by the ids of their tests.
#[derive(Default)]
struct Counts {
    of_tests: HashMap<String, usize>,
    /// Memory of the numbers, in bytes.
    size: usize,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Counted {
    test: Option<Id>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Id {
    test_id: Text<256>,
}

impl Counts {
    fn check(&self) -> Result<(), Fault> {
        if self.size <= held::LARGEST {
            return Ok(());
        }
        let problem = format!("its ids of tests are larger than {} MiB", held::LARGEST >> 20);
        Err(excessive(PlaywrightBlob.name(), "split the run into shards", problem))
    }
}

impl Members for Counts {
    fn member<'de, A: MapAccess<'de>>(&mut self, name: &str, map: &mut A) -> Result<(), A::Error> {
        if name != "params" {
            return map.next_value::<IgnoredAny>().map(drop);
        }
        // Only the end of a test has this member.
        if let Some(Counted { test: Some(test) }) = map.next_value()? {
            let size = test.test_id.0.len() + 60;
            let count = self.of_tests.entry(test.test_id.0).or_default();
            self.size += if *count == 0 { size } else { 0 };
            *count += 1;
        }
        Ok(())
    }
}

/// State of the reader.
struct Report<'o, 's> {
    /// Numbers of results that are still to come.
    counts: HashMap<String, usize>,
    /// Names of the projects.
    projects: Vec<String>,
    tests: Declared,
    /// Tests that run.
    run: Run,
    /// Failures outside of tests.
    errors: Vec<Problem>,
    /// Status of the run.
    end: Option<String>,
    /// Whether a test failed in its last attempt.
    is_red: bool,
    output: &'o mut Output<'s>,
}

struct Event<'r, 'o, 's> {
    method: String,
    report: &'r mut Report<'o, 's>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RunError {
    error: Failure,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RunEnd {
    result: Status,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Status {
    status: Text<32>,
}

impl Members for Event<'_, '_, '_> {
    fn member<'de, A: MapAccess<'de>>(&mut self, name: &str, map: &mut A) -> Result<(), A::Error> {
        let report = &mut *self.report;
        match (name, self.method.as_str()) {
            ("method", _) => self.method = map.next_value::<Text<64>>()?.0,
            ("params", "onProject") => {
                if report.projects.len() == MOST_PROJECTS {
                    return map.next_value::<IgnoredAny>().map(drop);
                }
                report.projects.push(String::new());
                let mut project = Project::new(&mut report.tests, &mut report.projects);
                map.next_value_seed(Object(&mut project))?;
                report.tests.check().map_err(|fault| report.output.stop(fault))?;
            }
            ("params", "onTestBegin") => report.run.begin(map.next_value()?),
            ("params", "onStepBegin") => report.run.begin_step(map.next_value()?),
            ("params", "onStepEnd") => report.run.end_step(map.next_value()?),
            ("params", "onStdIO") => report.run.print(&map.next_value()?),
            ("params", "onAttach") => report.run.attach(map.next_value()?),
            ("params", "onTestEnd") => {
                let (id, attempt, annotations) = report.run.end(map.next_value()?);
                report.tests.add(&id, attempt, annotations);
                report.complete(&id)?;
            }
            ("params", "onError") => {
                let RunError { error } = map.next_value()?;
                report.errors.push(error.into_problem(Nature::Error));
                report.errors.truncate(MOST_PROBLEMS);
            }
            ("params", "onEnd") => {
                report.end = Some(map.next_value::<RunEnd>()?.result.status.0);
            }
            _ => _ = map.next_value::<IgnoredAny>()?,
        }
        report.run.check().map_err(|fault| report.output.stop(fault))
    }
}

impl Report<'_, '_> {
    /// Passes on a test after its last result.
    fn complete<E: serde::de::Error>(&mut self, id: &str) -> Result<(), E> {
        let count = self.counts.entry(id.to_owned()).or_default();
        *count = count.saturating_sub(1);
        if *count > 0 {
            return self.tests.check().map_err(|fault| self.output.stop(fault));
        }
        let Some(test) = self.tests.take(id, &self.projects) else { return Ok(()) };
        self.is_red |= Nature::of(test.result()).is_some();
        self.output.add(test)
    }

    /// Passes on tests that did not end, and the failures of the run.
    fn finish<E: serde::de::Error>(mut self) -> Result<(), E> {
        for (id, attempt) in std::mem::take(&mut self.run).finish() {
            self.tests.add(&id, attempt, Vec::new());
        }
        for id in self.tests.ids() {
            let Some(test) = self.tests.take(&id, &self.projects) else { continue };
            self.is_red |= Nature::of(test.result()).is_some();
            self.output.add(test)?;
        }
        let Self { errors, end, is_red, output, .. } = self;
        output.with(|sink| {
            if !errors.is_empty() {
                let attempts = vec![crate::Attempt::with(errors)];
                return sink.add(Test { attempts, ..Test::default().of_run() });
            }
            match end.as_deref() {
                None => sink.fail_run(Nature::Abortion, "The report ends before the run did."),
                Some("interrupted") if !is_red => {
                    sink.fail_run(Nature::Abortion, "The run was interrupted.")
                }
                Some("passed" | "interrupted") => Ok(()),
                Some(_) if is_red => Ok(()),
                Some(status) => {
                    let message = format!("The run {status}, but none of its tests did.");
                    sink.fail_run(Nature::Error, &message)
                }
            }
        })
    }
}
