//! The events of `go test -json`, one per line.
//!
//! Tests run in parallel, so that their events alternate. A test without an end did not finish. Lines
//! that are not JSON come from packages that cannot be built.

use std::{
    collections::{BTreeMap, HashMap},
    io::BufRead,
};

use assay_proto::{Fault, TestResult, Timestamp};
use serde::Deserialize;

use crate::{
    Attempt, Format, Head, Nature, Problem, Sink, Test,
    fault::excessive,
    json::{self, Number, Text},
    limits::{MESSAGE, OUTPUT, TEXT},
    lines::Lines,
    texts::keep_end,
    values::{duration, time},
};

/// Maximum number of tests that run at the same time. Each needs some memory.
const MOST_OPEN: usize = 10_000;

/// Maximum number of packages.
const MOST_PACKAGES: usize = 10_000;

/// Name of the test that stands for a package which failed as a whole, as in gotestsum.
const WHOLE: &str = "TestMain";

/// The format of `go test -json`.
pub struct GoTest;

impl Format for GoTest {
    fn name(&self) -> &'static str {
        "go test JSON"
    }

    fn recognizes(&self, head: &Head) -> bool {
        let first = head.lines().find(|line| line.starts_with(b"{"));
        first.is_some_and(|line| {
            let json = json::Outline::of(line);
            json.has(1, "Action") && (json.has(1, "Package") || json.has(1, "ImportPath"))
        })
    }

    fn read(&self, file: &mut dyn BufRead, sink: Sink<'_>) -> Result<(), Fault> {
        let mut report = Report { packages: HashMap::new(), open: 0, sink };
        let mut lines = Lines::new(self.name(), file);
        while let Some((number, line)) = lines.next()? {
            let line = line.trim_ascii();
            if line.starts_with(b"{") {
                let event = json::parse(self.name(), line, number)?;
                report.add(event, number)?;
            } else {
                report.add_text(&String::from_utf8_lossy(line))?;
            }
        }
        report.finish()
    }
}

/// A line of the report.
#[derive(Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct Event {
    time: Text<64>,
    action: Text<32>,
    package: Text<MESSAGE>,
    import_path: Text<MESSAGE>,
    test: Text<MESSAGE>,
    output: Text<MESSAGE>,
    /// Seconds.
    elapsed: Number,
}

/// A package that runs.
#[derive(Default)]
struct Package {
    output: String,
    has_failures: bool,
    /// Tests that run, by name.
    tests: BTreeMap<String, Running>,
}

/// A test that runs.
#[derive(Default)]
struct Running {
    start: Option<Timestamp>,
    output: String,
}

/// State of the reader.
struct Report<'s> {
    packages: HashMap<String, Package>,
    /// Number of tests that run.
    open: usize,
    sink: Sink<'s>,
}

impl Report<'_> {
    fn add(&mut self, event: Event, line: usize) -> Result<(), Fault> {
        // The output of a build has the package with its test variant.
        let import = event.import_path.0.split(' ').next().unwrap_or_default();
        let name = if event.package.0.is_empty() { import } else { &event.package.0 };
        let package = self.packages.entry(name.to_owned()).or_default();
        let result = match event.action.0.as_str() {
            "pass" | "bench" => TestResult::Passed,
            "fail" => TestResult::Failed,
            "skip" => TestResult::Canceled,
            "output" | "build-output" => {
                let test = package.tests.get_mut(&event.test.0);
                let output = test.map_or(&mut package.output, |test| &mut test.output);
                keep_end(output, &event.output.0, OUTPUT);
                return self.check(line);
            }
            "run" => {
                let running = Running { start: time(&event.time.0), output: String::new() };
                let previous = package.tests.insert(event.test.0, running);
                self.open += usize::from(previous.is_none());
                return self.check(line);
            }
            _ => return Ok(()),
        };
        if event.test.0.is_empty() {
            let package = self.packages.remove(name).unwrap_or_default();
            return self.end_package(name, package, result, duration(event.elapsed.0));
        }
        package.has_failures |= result == TestResult::Failed;
        let running = package.tests.remove(&event.test.0);
        self.open -= usize::from(running.is_some());
        let seconds = duration(event.elapsed.0);
        let test = test(name, event.test.0, running.unwrap_or_default(), seconds, result);
        (self.sink)(test)
    }

    fn check(&self, line: usize) -> Result<(), Fault> {
        let problem = if self.open > MOST_OPEN {
            format!("more than {MOST_OPEN} tests run at the same time")
        } else if self.packages.len() > MOST_PACKAGES {
            format!("more than {MOST_PACKAGES} packages run at the same time")
        } else {
            return Ok(());
        };
        Err(excessive(GoTest.name(), &format!("line {line}"), problem))
    }

    /// Reads a line such as `FAIL example.com/shop [build failed]`, with a tab as the first space: the
    /// only trace of a package that old versions of Go cannot build.
    fn add_text(&mut self, line: &str) -> Result<(), Fault> {
        let failed = line.strip_prefix("FAIL\t").and_then(|rest| rest.split_once(" ["));
        let Some((package, reason)) = failed else { return Ok(()) };
        let output = reason.strip_suffix(']').unwrap_or(reason).to_owned();
        let whole = Running { output, ..Running::default() };
        (self.sink)(test(package.trim(), WHOLE.to_owned(), whole, 0.0, TestResult::Error))
    }

    /// Passes on the tests of a package that did not finish, and the package if it failed as a whole.
    fn end_package(
        &mut self,
        name: &str,
        package: Package,
        result: TestResult,
        seconds: f64,
    ) -> Result<(), Fault> {
        let fails = result == TestResult::Failed;
        let is_whole = fails && !package.has_failures && package.tests.is_empty();
        self.open -= package.tests.len();
        for (unfinished, running) in package.tests {
            (self.sink)(test(name, unfinished, running, 0.0, TestResult::Aborted))?;
        }
        if is_whole {
            let whole = Running { output: package.output, ..Running::default() };
            let error = TestResult::Error;
            return (self.sink)(test(name, WHOLE.to_owned(), whole, seconds, error));
        }
        Ok(())
    }

    fn finish(mut self) -> Result<(), Fault> {
        for (name, package) in std::mem::take(&mut self.packages) {
            // A package without an end, but with tests that run, was stopped.
            self.end_package(&name, package, TestResult::Aborted, 0.0)?;
        }
        Ok(())
    }
}

fn test(package: &str, name: String, running: Running, seconds: f64, result: TestResult) -> Test {
    let Running { start, output } = running;
    let (mut problems, mut reason) = (Vec::new(), String::new());
    let text = described(&output);
    match Nature::of(result) {
        Some(nature) => {
            let message = match nature {
                Nature::Abortion => "The test did not finish.".to_owned(),
                _ => text.lines().next().unwrap_or_default().trim().to_owned(),
            };
            let text = crate::texts::beginning(&text, TEXT);
            problems.push(Problem { nature, message, text });
        }
        None if result == TestResult::Canceled => text.trim().clone_into(&mut reason),
        None => {}
    }
    let attempt =
        Attempt { start, seconds, result, reason, problems, output, ..Attempt::default() };
    let class = package.to_owned();
    Test { class, name, start, seconds, attempts: vec![attempt], ..Test::default() }
}

/// Returns an output without the lines that mark events.
fn described(output: &str) -> String {
    let is_mark = |line: &&str| {
        let line = line.trim_start();
        line.starts_with("=== ") || line.starts_with("--- ")
    };
    output.lines().filter(|line| !is_mark(line)).collect::<Vec<_>>().join("\n")
}
