//! A suite while its element is open.

use assay_proto::Timestamp;

use crate::{
    Nature, Problem, Test,
    durations::has_point,
    identity::stable,
    limits::{MESSAGE, MOST_PROBLEMS, OUTPUT, TEXT},
    names::{file_name, shortened},
    sink::{Claims, Tally, count},
    texts::{keep_beginning, keep_end},
    times::time,
    xml::Attributes,
};

/// A suite, or the root element around suites.
#[derive(Default)]
pub(super) struct Suite {
    pub(super) name: String,
    pub(super) start: Option<Timestamp>,
    pub(super) host: String,
    pub(super) file: String,
    /// Whether it is the root element around suites.
    pub(super) is_root: bool,
    /// Whether the suite is a browser, as in reports of Karma.
    pub(super) is_browser: bool,
    /// Whether its duration has a decimal point.
    pub(super) has_point: bool,
    /// Numbers that the suite states, and those of what was found in it.
    pub(super) claims: Claims,
    pub(super) found: Tally,
    /// Number of tests that were passed on before it.
    pub(super) first: usize,
    /// Failures outside of its tests.
    problems: Vec<Problem>,
    pub(super) output: String,
}

impl Suite {
    pub(super) fn new(attributes: &Attributes<'_>, first: usize) -> Self {
        let mut suite = Self { first, ..Self::default() };
        attributes.each(|name, value| match name {
            // Shortened because each of its tests has a copy.
            "name" => suite.name = shortened(value.trim()),
            "timestamp" => suite.start = time(value),
            "hostname" => suite.host = shortened(value.trim()),
            "file" | "filepath" => suite.file = file_name(value),
            "time" => suite.has_point = has_point(value),
            "tests" => suite.claims.tests = count(value),
            "failures" | "errors" => suite.claims.add_failures(value),
            "skipped" => suite.claims.skipped = count(value),
            _ => {}
        });
        suite
    }

    /// Begins a failure outside of the tests.
    pub(super) fn open_problem(&mut self, nature: Nature, attributes: &Attributes<'_>) {
        let mut problem = Problem { nature, ..Problem::default() };
        attributes.each(|name, value| {
            if name == "message" {
                keep_beginning(&mut problem.message, value, MESSAGE);
            }
        });
        self.problems.truncate(MOST_PROBLEMS - 1);
        self.problems.push(problem);
    }

    /// Adds text of the last failure.
    pub(super) fn add_text(&mut self, text: &str) {
        if let Some(problem) = self.problems.last_mut() {
            keep_beginning(&mut problem.text, text, TEXT);
        }
    }

    pub(super) fn add_output(&mut self, text: &str) {
        keep_end(&mut self.output, text, OUTPUT);
    }

    /// Removes the failures outside of the tests.
    pub(super) fn take_problems(&mut self) -> Vec<Problem> {
        std::mem::take(&mut self.problems)
    }

    /// Returns the entry of the suite, which is the last of these.
    pub(super) fn owner(suites: &[Self]) -> Test {
        let names = suites.iter().map(|suite| suite.name.clone());
        let mut suites: Vec<String> = names.filter(|name| !name.is_empty()).collect();
        match suites.pop() {
            Some(name) => Test { suites, name: stable(&name).to_owned(), ..Test::default() },
            None => Test::default().of_run(),
        }
    }
}
