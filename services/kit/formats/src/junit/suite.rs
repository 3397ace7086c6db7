//! A suite while its element is open.

use assay_proto::Timestamp;

use crate::{
    Nature, Problem, Property, Test,
    durations::has_point,
    identity::stable,
    limits::{MESSAGE, MOST_PROBLEMS, OUTPUT, TEXT},
    names::{file_name, shortened},
    sink::{Claims, Tally, count},
    texts::{beginning, keep_beginning, keep_end},
    times::time,
    xml::Attributes,
};

/// How the JUnit logger of .NET begins the message of a run that was aborted, among other errors.
const ABORTED_RUN: &str = "Error - The active test run was aborted.";

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
    /// Why it failed, if it states that it did, as suites of Ginkgo do.
    failure: Option<String>,
    pub(super) output: String,
    /// End of its standard error.
    errors: String,
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

    /// Reads a property of the suite.
    pub(super) fn describe(&mut self, Property { name, value }: &Property) {
        match (name.as_str(), &mut self.failure) {
            ("browser.fullName", _) => self.is_browser = true,
            ("SuiteSucceeded", failure) if value == "false" => *failure = Some(String::new()),
            ("SpecialSuiteFailureReason", Some(reason)) => reason.clone_from(value),
            _ => {}
        }
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

    pub(super) fn add_error(&mut self, text: &str) {
        self.add_output(text);
        keep_end(&mut self.errors, text, TEXT);
    }

    /// Removes the failures outside of the tests. One that the suite only states is a failure if nothing
    /// explains it.
    pub(super) fn take_problems(&mut self) -> Vec<Problem> {
        if let Some((_, reason)) = self.errors.rsplit_once(ABORTED_RUN) {
            let text = reason.trim();
            let message = text.lines().next().unwrap_or_default();
            let message = beginning(&format!("The run was aborted. {message}"), MESSAGE);
            self.problems.truncate(MOST_PROBLEMS - 1);
            self.problems.push(Problem {
                nature: Nature::Abortion,
                message,
                text: text.to_owned(),
            });
        }
        let is_explained = self.found.failed > 0 || !self.problems.is_empty();
        if let Some(reason) = self.failure.take().filter(|_| !is_explained) {
            let message = match reason.trim() {
                "" => "The suite failed, but none of its tests did.".to_owned(),
                reason => reason.to_owned(),
            };
            self.problems.push(Problem { nature: Nature::Error, message, ..Problem::default() });
        }
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
