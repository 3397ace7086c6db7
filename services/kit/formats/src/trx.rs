//! TRX, the results of Visual Studio and `dotnet test`.
//!
//! The class of a test is in its definition, which most tools write behind the results. The results
//! wait for the definitions, in bounded memory.

use std::{collections::HashMap, io::BufRead};

use assay_proto::{Fault, TestResult};

use crate::{
    Attachment, Attempt, Format, Head, Nature, Problem, Property, Sink, TAG, Test,
    durations::seconds,
    fault::excessive,
    held::Held,
    limits::{MESSAGE, MOST_LABELS, MOST_PROBLEMS, OUTPUT},
    names::named,
    sink::{Claims, count},
    texts::{beginning, keep_end},
    times::time,
    xml::{Attributes, Elements, Path, read_elements},
};

/// Maximum size of the ids and classes of definitions, in bytes.
const DEFINITIONS: usize = 32 << 20;

/// The format of TRX.
pub struct Trx;

impl Format for Trx {
    fn name(&self) -> &'static str {
        "TRX"
    }

    fn recognizes(&self, head: &Head) -> bool {
        head.xml_root() == "TestRun"
    }

    fn read(&self, file: &mut dyn BufRead, sink: Sink<'_>) -> Result<(), Fault> {
        let mut report = Report {
            definitions: HashMap::new(),
            size: 0,
            is_defined: false,
            id: String::new(),
            tags: Vec::new(),
            results: Vec::new(),
            held: Held::default(),
            summary: Summary::default(),
            sink,
        };
        let replaced = report.sink.replaced();
        read_elements(self.name(), file, &replaced, &mut report)?;
        report.release()?;
        report.finish()
    }
}

/// An open result.
#[derive(Default)]
struct Open {
    id: String,
    test: Test,
    /// Whether it only sums up the results within it, such as the rows of a data-driven test.
    is_sum: bool,
}

/// Statements of the run about itself.
#[derive(Default)]
struct Summary {
    claims: Claims,
    is_failed: bool,
    /// Messages about the run, such as the crash of the test host.
    problems: Vec<Problem>,
    is_problem: bool,
    /// Results that sum up others, which some tools count.
    sums: usize,
}

/// The class and the categories of a test.
struct Definition {
    class: String,
    tags: Vec<String>,
}

/// State of the reader.
struct Report<'s> {
    /// Definitions by the ids of tests.
    definitions: HashMap<String, Definition>,
    /// Size of these, in bytes.
    size: usize,
    /// Whether the definitions are complete.
    is_defined: bool,
    /// Id and categories of the open definition.
    id: String,
    tags: Vec<String>,
    /// Open results, outermost first.
    results: Vec<Open>,
    held: Held<String>,
    summary: Summary,
    sink: Sink<'s>,
}

impl Elements for Report<'_> {
    fn is_output(name: &str) -> bool {
        matches!(name, "StdOut" | "StdErr")
    }

    fn open(&mut self, path: &Path, attributes: &Attributes<'_>) -> Result<(), Fault> {
        match path.name() {
            "UnitTest" => {
                self.id = attributes.get("id").unwrap_or_default();
                self.tags.clear();
            }
            "TestCategoryItem" if self.tags.len() < MOST_LABELS => {
                self.tags.push(named(&attributes.get("TestCategory").unwrap_or_default()));
            }
            "TestMethod" if path.parent() == "UnitTest" => {
                let class = attributes.get("className").unwrap_or_default();
                // MSTest adds the assembly.
                let class = class.split(',').next().unwrap_or_default().trim().to_owned();
                let id = std::mem::take(&mut self.id);
                let tags = std::mem::take(&mut self.tags);
                self.size += id.len() + class.len() + 64;
                self.size += tags.iter().map(|tag| tag.len() + 24).sum::<usize>();
                if self.size > DEFINITIONS {
                    let problem = "it has too many definitions";
                    return Err(excessive(Trx.name(), "split the report", problem));
                }
                self.definitions.insert(id, Definition { class: named(&class), tags });
            }
            "ResultSummary" => {
                let outcome = attributes.get("outcome").unwrap_or_default();
                let is_failed = ["Failed", "Error", "Aborted", "Timeout", "Disconnected"];
                self.summary.is_failed = is_failed.contains(&outcome.as_str());
            }
            "Counters" => attributes.each(|name, value| match name {
                "total" => self.summary.claims.tests = count(value),
                "failed" | "error" | "timeout" | "aborted" => {
                    self.summary.claims.add_failures(value);
                }
                _ => {}
            }),
            "RunInfo" => self.open_run_info(attributes),
            name if is_result(name) => self.results.push(result(attributes)),
            "InnerResults" => {
                if let Some(outer) = self.results.last_mut() {
                    outer.is_sum = true;
                }
            }
            "ResultFile" => {
                if let Some(attempt) = self.attempt() {
                    attempt.attach(Attachment::at(&attributes.get("path").unwrap_or_default()));
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn close(&mut self, path: &Path, text: &str) -> Result<(), Fault> {
        match path.name() {
            "TestDefinitions" => {
                self.is_defined = true;
                return self.release();
            }
            name if is_result(name) => return self.add(),
            "Text" if path.parent() == "RunInfo" && self.summary.is_problem => {
                if let Some(problem) = self.summary.problems.last_mut() {
                    problem.message = beginning(text, MESSAGE);
                }
            }
            name => {
                let Some(attempt) = self.attempt() else { return Ok(()) };
                match (name, attempt.problems.last_mut()) {
                    ("StdOut" | "StdErr", _) => keep_end(&mut attempt.output, text, OUTPUT),
                    ("Message", Some(problem)) => problem.message = beginning(text, MESSAGE),
                    ("StackTrace", Some(problem)) => text.clone_into(&mut problem.text),
                    ("Message", None) if attempt.result != TestResult::Passed => {
                        attempt.reason = beginning(text, MESSAGE);
                    }
                    _ => {}
                }
            }
        }
        Ok(())
    }
}

impl Report<'_> {
    fn attempt(&mut self) -> Option<&mut Attempt> {
        self.results.last_mut().and_then(|open| open.test.attempts.last_mut())
    }

    /// Passes a result on, or keeps it until it is defined.
    fn add(&mut self) -> Result<(), Fault> {
        let Some(Open { id, mut test, is_sum }) = self.results.pop() else { return Ok(()) };
        if is_sum {
            self.summary.sums += 1;
            return Ok(());
        }
        if self.is_defined {
            identify(&self.definitions, &id, &mut test);
            return self.sink.add(test);
        }
        self.held.push(id, test, Trx.name())
    }

    /// Begins a message about the run. Others than errors are information.
    fn open_run_info(&mut self, attributes: &Attributes<'_>) {
        let nature = match attributes.get("outcome").unwrap_or_default().as_str() {
            "Error" | "Failed" | "Timeout" => Some(Nature::Error),
            "Aborted" | "Disconnected" => Some(Nature::Abortion),
            _ => None,
        };
        self.summary.is_problem = nature.is_some();
        if let Some(nature) = nature {
            self.summary.problems.truncate(MOST_PROBLEMS - 1);
            self.summary.problems.push(Problem { nature, ..Problem::default() });
        }
    }

    /// Passes on what the run states about itself.
    fn finish(&mut self) -> Result<(), Fault> {
        let Summary { mut claims, is_failed, mut problems, sums, .. } =
            std::mem::take(&mut self.summary);
        let mut found = self.sink.tally();
        found.tests += sums;
        let owner = Test::default().of_run();
        // The adapter of xUnit.net logs each failed test.
        problems.retain(|problem| found.failed == 0 || !problem.message.starts_with("[xUnit.net"));
        if is_failed && !problems.is_empty() {
            let attempts = vec![Attempt::with(problems)];
            return self.sink.add(Test { attempts, ..owner });
        }
        if is_failed {
            claims.failures = claims.failures.max(Some(1));
        }
        self.sink.compare(found, claims, &owner).map(drop)
    }

    fn release(&mut self) -> Result<(), Fault> {
        let Self { held, definitions, sink, .. } = self;
        held.release(|id, test| identify(definitions, id, test), &mut **sink)
    }
}

/// Sets the class of a test, removes it from the name, and makes the categories tags.
fn identify(definitions: &HashMap<String, Definition>, id: &str, test: &mut Test) {
    let Some(Definition { class, tags }) = definitions.get(id) else { return };
    for tag in tags {
        test.label(Property::new(TAG, tag));
    }
    let own = test.name.strip_prefix(class.as_str()).and_then(|rest| rest.strip_prefix('.'));
    if let Some(own) = own {
        test.name = own.to_owned();
    }
    test.class.clone_from(class);
}

/// Whether an element is a result, such as `UnitTestResult` or `WebTestResult`.
fn is_result(name: &str) -> bool {
    name == "TestResultAggregation" || name.ends_with("TestResult")
}

fn result(attributes: &Attributes<'_>) -> Open {
    let mut open = Open::default();
    // Visual Studio leaves the outcome out if it is an error.
    let mut outcome = TestResult::Error;
    attributes.each(|name, value| match name {
        "testId" => open.id = beginning(value, MESSAGE),
        "testName" => open.test.name = named(value),
        "startTime" => open.test.start = time(value),
        "duration" => open.test.seconds = seconds(value, true).unwrap_or_default(),
        "outcome" => {
            outcome = match value {
                "Passed" | "PassedButRunAborted" | "Warning" | "Completed" => TestResult::Passed,
                "Failed" => TestResult::Failed,
                "Error" | "NotRunnable" | "Timeout" => TestResult::Error,
                "Aborted" | "Disconnected" | "InProgress" => TestResult::Aborted,
                _ => TestResult::Canceled,
            }
        }
        _ => {}
    });
    let attempt = Attempt::new(open.test.start, open.test.seconds, outcome);
    open.test.attempts.push(attempt);
    open
}
