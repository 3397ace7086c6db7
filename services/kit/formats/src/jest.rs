//! The JSON reports of Jest and of Vitest, which have almost the same form: files with their tests.
//!
//! Failures outside of tests are those of files, except that a suite of Vitest whose hook fails is only
//! counted.

mod case;
mod file;

use std::io::BufRead;

use assay_proto::Fault;
use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, SeqAccess};

use self::file::File;
use crate::{
    Format, Head, Nature, Sink, Test,
    json::{self, Array, Elements, Flag, Members, Number, Object, Output},
    sink::{Claims, Tally},
};

/// The format of Jest's JSON reports.
pub struct Jest;

/// The format of Vitest's JSON reports.
pub struct Vitest;

/// The tool that wrote a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tool {
    Jest,
    Vitest,
}

/// Members of the document that only Jest writes.
const OF_JEST: [&str; 3] = ["numRuntimeErrorTestSuites", "openHandles", "wasInterrupted"];

fn is_report(head: &Head, is_jest: bool) -> bool {
    head.object().is_some_and(|json| {
        let has = |name: &&str| json.has(1, name);
        let is_report = json.has(1, "numTotalTestSuites") && json.has(1, "numTotalTests");
        is_report && OF_JEST.iter().any(has) == is_jest
    })
}

impl Format for Jest {
    fn name(&self) -> &'static str {
        "Jest JSON"
    }

    fn recognizes(&self, head: &Head) -> bool {
        is_report(head, true)
    }

    fn read(&self, file: &mut dyn BufRead, sink: Sink<'_>) -> Result<(), Fault> {
        read(Tool::Jest, self.name(), file, sink)
    }
}

impl Format for Vitest {
    fn name(&self) -> &'static str {
        "Vitest JSON"
    }

    fn recognizes(&self, head: &Head) -> bool {
        is_report(head, false)
    }

    fn read(&self, file: &mut dyn BufRead, sink: Sink<'_>) -> Result<(), Fault> {
        read(Tool::Vitest, self.name(), file, sink)
    }
}

fn read(tool: Tool, format: &str, file: &mut dyn BufRead, sink: Sink<'_>) -> Result<(), Fault> {
    json::read(format, file, sink, |json, output| {
        let (counts, found) = Default::default();
        let mut report = Report { tool, counts, found, output };
        Object(&mut report).deserialize(json)?;
        let Report { counts, found, output, .. } = report;
        output.with(|sink| finish(tool, &counts, &found, sink))
    })
}

/// Numbers that the document states about itself.
#[derive(Default)]
struct Counts {
    tests: Number,
    failed_tests: Number,
    failed_suites: Number,
    success: Option<Flag>,
    was_interrupted: Flag,
}

/// Numbers of what was found.
#[derive(Default)]
struct Found {
    tests: usize,
    /// Files that failed. Of Vitest, also suites in them with a failed test.
    failed_suites: usize,
    /// Files that failed for a reason that the report does not have.
    unexplained: usize,
}

/// State of the reader.
struct Report<'o, 's> {
    tool: Tool,
    counts: Counts,
    found: Found,
    output: &'o mut Output<'s>,
}

impl Members for Report<'_, '_> {
    fn member<'de, A: MapAccess<'de>>(&mut self, name: &str, map: &mut A) -> Result<(), A::Error> {
        match name {
            "numTotalTests" => self.counts.tests = map.next_value()?,
            "numFailedTests" => self.counts.failed_tests = map.next_value()?,
            "numFailedTestSuites" => self.counts.failed_suites = map.next_value()?,
            "success" => self.counts.success = map.next_value()?,
            "wasInterrupted" => self.counts.was_interrupted = map.next_value()?,
            "testResults" => return map.next_value_seed(Array(self)),
            _ => _ = map.next_value::<IgnoredAny>()?,
        }
        Ok(())
    }
}

impl Elements for Report<'_, '_> {
    fn element<'de, A: SeqAccess<'de>>(&mut self, sequence: &mut A) -> Result<bool, A::Error> {
        let mut file = File::new(self.tool, self.output);
        if sequence.next_element_seed(Object(&mut file))?.is_none() {
            return Ok(false);
        }
        file.finish(&mut self.found)?;
        Ok(true)
    }
}

/// Passes on what contradicts the numbers, and failures of the run.
fn finish(tool: Tool, counts: &Counts, found: &Found, sink: Sink<'_>) -> Result<(), Fault> {
    if counts.was_interrupted.0 {
        sink.fail_run(Nature::Abortion, "The run was interrupted.")?;
    }
    let owner = Test::default().of_run();
    let (tests, failures) = (counts.tests.count(), counts.failed_tests.count());
    let claims = Claims { tests, failures, ..Claims::default() };
    let tally = Tally { tests: found.tests, ..sink.tally() };
    sink.compare(tally, claims, &owner)?;
    let failed = counts.failed_suites.count().unwrap_or_default();
    let more = failed.saturating_sub(found.failed_suites);
    if more > 0 && found.unexplained == 0 {
        let reason = match tool {
            Tool::Jest => "",
            Tool::Vitest => ": their hooks failed",
        };
        let message = format!(
            "The report counts {failed} failed suites, but {more} of them have no failed test{reason}."
        );
        return sink.fail_run(Nature::Error, &message);
    }
    if sink.tally().red == 0 && counts.success.is_some_and(|success| !success.0) {
        return sink.fail_run(Nature::Error, "The run failed, but none of its tests did.");
    }
    Ok(())
}
