//! The events of `go test -json`, one per line.
//!
//! Tests run in parallel, so that their events alternate. A test without an end did not finish. Lines
//! that are not JSON come from packages that cannot be built.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    io::BufRead,
};

use assay_proto::{Fault, TestResult, Timestamp};
use serde::Deserialize;

use crate::{
    Attempt, Format, Head, Nature, Problem, Retry, Sink, Test,
    durations::{duration, seconds},
    fault::excessive,
    json::{self, Lenient, Name, Number, Text},
    limits::{MESSAGE, OUTPUT, TEXT},
    lines::Lines,
    texts::keep_end,
    times::time,
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
        let replaced = sink.replaced();
        let (packages, ended) = Default::default();
        let mut report = Report { packages, ended, open: 0, sink };
        let mut lines = Lines::new(self.name(), Lenient::new(file, replaced));
        while let Some((number, line)) = lines.next()? {
            let line = line.trim_ascii();
            if !line.starts_with(b"{") {
                report.add_text(&String::from_utf8_lossy(line))?;
            } else if let Some(event) = json::parse(line, number, report.sink) {
                report.add(event, number)?;
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
    package: Name,
    import_path: Text<MESSAGE>,
    /// The package whose build failed, which may be one that others need.
    failed_build: Text<MESSAGE>,
    test: Name,
    output: Text<MESSAGE>,
    /// Seconds.
    elapsed: Number,
}

/// A package that runs.
#[derive(Default)]
struct Package {
    output: String,
    /// Whether it has begun, and not only been built.
    has_begun: bool,
    has_failures: bool,
    /// Tests that run, by name.
    tests: BTreeMap<String, Running>,
}

/// A test that runs.
#[derive(Default)]
struct Running {
    start: Option<Timestamp>,
    output: String,
    /// Result and duration without an event of their own: Go does not recognize the mark of a test
    /// whose output does not end with a line.
    marked: Option<(TestResult, f64)>,
}

/// State of the reader.
struct Report<'s> {
    packages: HashMap<String, Package>,
    /// Packages that have ended. If one runs again, its failed tests are run again.
    ended: HashSet<String>,
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
                package.mark(&event.output.0);
                let test = package.tests.get_mut(&event.test.0);
                let output = test.map_or(&mut package.output, |test| &mut test.output);
                keep_end(output, &event.output.0, OUTPUT);
                return self.check(line);
            }
            "run" => {
                package.has_begun = true;
                let running = Running { start: time(&event.time.0), ..Running::default() };
                let previous = package.tests.insert(event.test.0, running);
                self.open += usize::from(previous.is_none());
                return self.check(line);
            }
            "start" => {
                package.has_begun = true;
                return Ok(());
            }
            _ => return Ok(()),
        };
        if event.test.0.is_empty() {
            let mut package = self.packages.remove(name).unwrap_or_default();
            let build = event.failed_build.0.split(' ').next().unwrap_or_default();
            if let Some(needed) = self.packages.get(build) {
                let own = std::mem::replace(&mut package.output, needed.output.clone());
                keep_end(&mut package.output, &own, OUTPUT);
            }
            self.end_package(name, package, result, duration(event.elapsed.0))?;
            self.ended.insert(name.to_owned());
            return self.check(line);
        }
        package.has_failures |= result == TestResult::Failed;
        let running = package.tests.remove(&event.test.0);
        self.open -= usize::from(running.is_some());
        if result == TestResult::Passed {
            package.pass_within(&event.test.0);
        }
        let seconds = duration(event.elapsed.0);
        let test = test(name, event.test.0, running.unwrap_or_default(), seconds, result);
        self.pass_on(test)
    }

    /// Passes on a test of a package. In a package that has run before, it is a further attempt.
    fn pass_on(&mut self, test: Test) -> Result<(), Fault> {
        let has_ended = self.ended.contains(&test.class);
        let retry = if has_ended { Retry::AfterFailure } else { Retry::Never };
        self.sink.add(Test { retry, ..test })
    }

    fn check(&self, line: usize) -> Result<(), Fault> {
        let problem = if self.open > MOST_OPEN {
            format!("more than {MOST_OPEN} tests run at the same time")
        } else if self.packages.len().max(self.ended.len()) > MOST_PACKAGES {
            format!("it has more than {MOST_PACKAGES} packages")
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
        self.pass_on(test(package.trim(), WHOLE.to_owned(), whole, 0.0, TestResult::Error))
    }

    /// Passes on the tests of a package that have no end, and the package if it failed as a whole. In a
    /// package that passed, all of them have.
    fn end_package(
        &mut self,
        name: &str,
        package: Package,
        result: TestResult,
        seconds: f64,
    ) -> Result<(), Fault> {
        self.open -= package.tests.len();
        let mut has_failures = package.has_failures;
        for (unfinished, running) in package.tests {
            let without_mark = match result {
                TestResult::Passed => (TestResult::Passed, 0.0),
                _ => (TestResult::Aborted, 0.0),
            };
            let (result, seconds) = running.marked.unwrap_or(without_mark);
            has_failures |= Nature::of(result).is_some();
            self.pass_on(test(name, unfinished, running, seconds, result))?;
        }
        let whole = match result {
            TestResult::Failed if !has_failures => TestResult::Error,
            TestResult::Aborted if package.has_begun && !has_failures => TestResult::Aborted,
            _ => return Ok(()),
        };
        let running = Running { output: package.output, ..Running::default() };
        self.pass_on(test(name, WHOLE.to_owned(), running, seconds, whole))
    }

    fn finish(mut self) -> Result<(), Fault> {
        let mut packages: Vec<_> = std::mem::take(&mut self.packages).into_iter().collect();
        packages.sort_by(|one, other| one.0.cmp(&other.0));
        for (name, package) in packages {
            // A package without an end was stopped.
            self.end_package(&name, package, TestResult::Aborted, 0.0)?;
        }
        Ok(())
    }
}

impl Package {
    /// Reads marks such as `--- PASS: TestPay (0.01s)`, wherever they are in a line.
    fn mark(&mut self, output: &str) {
        for (position, _) in output.match_indices("--- ") {
            let Some((word, rest)) = output[position + 4..].split_once(": ") else { continue };
            let result = match word {
                "PASS" => TestResult::Passed,
                "FAIL" => TestResult::Failed,
                "SKIP" => TestResult::Canceled,
                _ => continue,
            };
            let Some((name, rest)) = rest.split_once(" (") else { continue };
            if let Some(running) = self.tests.get_mut(name) {
                let took = rest.split_once(')').and_then(|(took, _)| seconds(took, true));
                running.marked = Some((result, took.unwrap_or_default()));
            }
        }
    }

    /// Lets the subtests of a test that passed pass, if they have no end: they cannot have failed.
    fn pass_within(&mut self, test: &str) {
        let prefix = format!("{test}/");
        let within = self.tests.range_mut(prefix.clone()..);
        for (_, running) in within.take_while(|(name, _)| name.starts_with(&prefix)) {
            running.marked.get_or_insert((TestResult::Passed, 0.0));
        }
    }
}

fn test(package: &str, name: String, running: Running, seconds: f64, result: TestResult) -> Test {
    let Running { start, output, .. } = running;
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
