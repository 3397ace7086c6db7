//! A file with its tests, while its object is open.

use std::{collections::HashSet, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{Error, IgnoredAny, MapAccess, SeqAccess, Visitor, value::MapAccessDeserializer},
};

use super::{Found, Tool, case::Case};
use crate::{
    Nature, Problem, Test,
    held::Held,
    json::{Array, Elements, Members, Number, Output, Text},
    limits::{MESSAGE, TEXT},
    names::{file_name, shortened},
    texts::beginning,
    times::since_1970,
    values::{javascript_problem, without_colours},
};

/// Heading of the failure of a file in the messages of Jest.
const HEADING: &str = "Test suite failed to run";

/// A file, whose name is behind its tests.
pub(super) struct File<'o, 's> {
    tool: Tool,
    path: Text<MESSAGE>,
    status: Text<16>,
    message: Text<TEXT>,
    start: Number,
    /// Its failure, if it is a member of its own.
    failure: Option<Problem>,
    /// Tests of Vitest, which the name of the file identifies.
    held: Held<()>,
    tests: usize,
    has_failed: bool,
    /// Hashes of the titles of suites with a failed test.
    failed: HashSet<u64>,
    output: &'o mut Output<'s>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ExecError {
    message: Text<MESSAGE>,
    stack: Text<TEXT>,
}

/// An error, which is only its text if a transformer such as ts-jest has failed.
struct ErrorOrText(ExecError);

impl<'de> Deserialize<'de> for ErrorOrText {
    fn deserialize<D: Deserializer<'de>>(value: D) -> Result<Self, D::Error> {
        value.deserialize_any(ErrorVisitor)
    }
}

struct ErrorVisitor;

impl<'de> Visitor<'de> for ErrorVisitor {
    type Value = ErrorOrText;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an error or its text")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<ErrorOrText, E> {
        let message = Text(beginning(text, MESSAGE));
        Ok(ErrorOrText(ExecError { message, ..ExecError::default() }))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<ErrorOrText, A::Error> {
        ExecError::deserialize(MapAccessDeserializer::new(map)).map(ErrorOrText)
    }
}

impl<'o, 's> File<'o, 's> {
    pub(super) fn new(tool: Tool, output: &'o mut Output<'s>) -> Self {
        let (path, status, message, start, failure, held, failed) = Default::default();
        let (tests, has_failed) = (0, false);
        Self {
            tool,
            path,
            status,
            message,
            start,
            failure,
            held,
            tests,
            has_failed,
            failed,
            output,
        }
    }

    /// Passes on its tests that wait, and its failure.
    pub(super) fn finish<E: Error>(mut self, found: &mut Found) -> Result<(), E> {
        let name = file_name(&self.path.0);
        let start = since_1970(self.start.0);
        let mut held = std::mem::take(&mut self.held);
        let complete = |(): &(), test: &mut Test| {
            test.class.clone_from(&name);
            test.start = start;
            test.attempts.iter_mut().for_each(|attempt| attempt.start = start);
        };
        self.output.with(|sink| held.release(complete, sink))?;
        found.tests += self.tests;
        found.failed_suites += self.failed.len() + usize::from(self.status.0 == "failed");
        let Some(problem) = self.problem() else { return Ok(()) };
        let is_unexplained = problem.text.is_empty() && problem.message.is_empty();
        found.unexplained += usize::from(is_unexplained);
        let owner = match self.tool {
            Tool::Jest => Test {
                suites: vec![shortened(&self.path.0)],
                class: HEADING.to_owned(),
                name,
                ..Test::default()
            },
            Tool::Vitest => Test { class: name.clone(), name, ..Test::default() },
        };
        let problem = if is_unexplained {
            let message = "The file failed, but none of its tests did.".to_owned();
            Problem { message, ..problem }
        } else {
            problem
        };
        self.output.with(|sink| sink.add_own(Test { start, ..owner }, problem))
    }

    /// Returns its failure that its tests do not have.
    fn problem(&mut self) -> Option<Problem> {
        if let Some(problem) = self.failure.take() {
            return Some(problem);
        }
        let message = without_colours(&self.message.0);
        let own = message.split_once(HEADING).map(|(_, own)| own);
        let (nature, own) = (Nature::Error, own.filter(|_| self.tool == Tool::Jest));
        // Messages of tests are the message of their file, too.
        let text = own.or_else(|| {
            (self.status.0 == "failed" && !self.has_failed).then_some(message.as_str())
        })?;
        let text = text.trim();
        let message = beginning(text.split("\n\n").next().unwrap_or_default(), MESSAGE);
        let text = if message == text { String::new() } else { text.to_owned() };
        Some(Problem { nature, message, text })
    }

    fn add<E: Error>(&mut self, case: Case) -> Result<(), E> {
        if case.is_file() {
            self.failure = case.into_problem();
            return Ok(());
        }
        self.tests += 1;
        let suites = case.suites();
        let test = case.into_test(self.tool);
        if Nature::of(test.result()).is_some() {
            self.has_failed = true;
            if self.tool == Tool::Vitest {
                self.failed.extend(suites);
            }
        }
        match self.tool {
            Tool::Jest => self.output.add(test),
            Tool::Vitest => {
                let held = self.held.push((), test, "Vitest JSON");
                held.map_err(|fault| self.output.stop(fault))
            }
        }
    }
}

impl Members for File<'_, '_> {
    fn member<'de, A: MapAccess<'de>>(&mut self, name: &str, map: &mut A) -> Result<(), A::Error> {
        match name {
            "name" | "testFilePath" => self.path = map.next_value()?,
            "status" => self.status = map.next_value()?,
            "message" | "failureMessage" => self.message = map.next_value()?,
            "startTime" => self.start = map.next_value()?,
            "testExecError" => {
                if let Some(ErrorOrText(ExecError { message, stack })) = map.next_value()? {
                    let text = if stack.0.is_empty() { &message.0 } else { &stack.0 };
                    self.failure = Some(javascript_problem(Nature::Error, text));
                }
            }
            // The second one is that of reporters, which write the result as they get it.
            "assertionResults" | "testResults" => return map.next_value_seed(Array(self)),
            _ => _ = map.next_value::<IgnoredAny>()?,
        }
        Ok(())
    }
}

impl Elements for File<'_, '_> {
    fn element<'de, A: SeqAccess<'de>>(&mut self, sequence: &mut A) -> Result<bool, A::Error> {
        let Some(case) = sequence.next_element::<Case>()? else { return Ok(false) };
        self.add(case)?;
        Ok(true)
    }
}
