//! A test, with its attempts.

use assay_proto::TestResult;
use serde::Deserialize;

use super::Tool;
use crate::{
    Attempt, Nature, Problem, Property, Test,
    durations::duration,
    json::{List, Map, Name, Number, Text},
    limits::{DEEPEST, MESSAGE, MOST_ATTEMPTS, MOST_LABELS, MOST_PROBLEMS, TEXT},
    names::{Hash, named},
    times::since_1970,
    values::{javascript_problem, one_line},
};

/// A test, or the failure of a file, which has no title.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Case {
    ancestor_titles: List<Name, DEEPEST>,
    title: Option<Name>,
    full_name: Name,
    status: Text<16>,
    /// Milliseconds.
    duration: Number,
    start_at: Number,
    failure_messages: List<Text<TEXT>, MOST_PROBLEMS>,
    /// Number of attempts.
    invocations: Number,
    /// Failures of the attempts before the last one.
    retry_reasons: List<Text<TEXT>, MOST_ATTEMPTS>,
    tags: List<Text<MESSAGE>, MOST_LABELS>,
    meta: Map,
}

impl Case {
    /// Returns whether this is the failure of its file.
    pub(super) fn is_file(&self) -> bool {
        self.title.is_none() && self.status.0 == "error"
    }

    /// Returns the failure of its file.
    pub(super) fn into_problem(self) -> Option<Problem> {
        let text = self.failure_messages.0.into_iter().next()?.0;
        let mut problem = javascript_problem(Nature::Error, &text);
        // The message follows a heading.
        let message = problem.message.split("\n\n").nth(1).map(|text| text.trim().to_owned());
        problem.message = message.unwrap_or(problem.message);
        Some(problem)
    }

    /// Returns hashes of the titles of the suites around it.
    pub(super) fn suites(&self) -> Vec<u64> {
        let mut hash = Hash::default();
        let titles = self.ancestor_titles.0.iter().map(|Name(title)| {
            hash.add(title.as_bytes());
            hash.add(&[0]);
            hash.value()
        });
        titles.collect()
    }

    pub(super) fn into_test(mut self, tool: Tool) -> Test {
        let mut test = Test::default();
        self.identify(&mut test, tool);
        test.start = since_1970(self.start_at.0);
        test.seconds = duration(self.duration.0.map(|milliseconds| milliseconds / 1e3));
        for Text(tag) in std::mem::take(&mut self.tags.0) {
            test.label(Property::new("tag", &tag));
        }
        let Map(meta) = std::mem::take(&mut self.meta);
        for property in meta.into_iter().filter(|property| !property.value.is_empty()) {
            test.label(property);
        }
        for attempt in self.earlier(tool) {
            test.push(attempt);
        }
        let last = self.last(tool);
        test.push(Attempt { start: test.start, seconds: test.seconds, ..last });
        test
    }

    /// The class is the whole name, as in reports of jest-junit. That of Vitest is the file.
    fn identify(&self, test: &mut Test, tool: Tool) {
        let titles = self.ancestor_titles.0.iter().chain(&self.title);
        let titles: Vec<&str> = titles.map(|Name(title)| title.as_str()).collect();
        match tool {
            Tool::Jest if self.full_name.0.is_empty() => test.name = titles.join(" "),
            Tool::Jest => test.name.clone_from(&self.full_name.0),
            Tool::Vitest => test.name = titles.join(" > "),
        }
        test.name = named(&one_line(&test.name));
        if test.name.is_empty() {
            "unnamed".clone_into(&mut test.name);
        } else if tool == Tool::Jest {
            test.class.clone_from(&test.name);
        }
    }

    /// Returns the attempts before the last one. Vitest has the failures of all in one list.
    fn earlier(&mut self, tool: Tool) -> Vec<Attempt> {
        let reasons = if tool == Tool::Vitest && self.status.0 == "passed" {
            std::mem::take(&mut self.failure_messages.0)
        } else {
            std::mem::take(&mut self.retry_reasons.0)
        };
        let failed =
            |Text(reason)| Attempt::with(vec![javascript_problem(Nature::Failure, &reason)]);
        let mut attempts: Vec<Attempt> = reasons.into_iter().map(failed).collect();
        let number = self.invocations.count().unwrap_or_default().saturating_sub(1);
        attempts.resize(attempts.len().max(number.min(MOST_ATTEMPTS)), Attempt::unreported());
        attempts
    }

    fn last(self, tool: Tool) -> Attempt {
        let skipped = |reason: &str| Attempt {
            result: TestResult::Canceled,
            reason: reason.to_owned(),
            ..Attempt::default()
        };
        match self.status.0.as_str() {
            "passed" => Attempt { result: TestResult::Passed, ..Attempt::default() },
            "todo" => skipped("The test is to be written."),
            "pending" if tool == Tool::Vitest => {
                let (nature, message) = (Nature::Abortion, "The test did not run.".to_owned());
                Attempt::with(vec![Problem { nature, message, ..Problem::default() }])
            }
            "pending" | "skipped" | "disabled" => skipped(""),
            "failed" | "error" => self.failed(),
            _ => Attempt { result: TestResult::Aborted, ..Attempt::default() },
        }
    }

    fn failed(self) -> Attempt {
        let messages = self.failure_messages.0.into_iter();
        let mut problems: Vec<Problem> =
            messages.map(|Text(stack)| javascript_problem(Nature::Failure, &stack)).collect();
        if problems.is_empty() {
            let message = "The test failed without a reason.".to_owned();
            problems.push(Problem { message, ..Problem::default() });
        }
        Attempt::with(problems)
    }
}
