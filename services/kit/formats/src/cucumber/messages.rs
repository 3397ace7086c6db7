//! Cucumber messages: one JSON object per line. They have all attempts.

mod envelope;

use std::{collections::HashMap, io::BufRead};

use assay_proto::{Fault, TestResult};

use self::envelope::{
    Envelope, Hook, ReportedAttachment, RunFinished, RunHookFinished, StepResult, TestCaseFinished,
    TestCaseStarted, TestStepFinished, Time,
};
use super::{
    definitions::Definitions,
    status::{add, complete, explanation, result},
};
use crate::{
    Attachment, Attempt, Content, Format, Head, Nature, Problem, Sink, Step, Test,
    durations::duration,
    fault::excessive,
    json::{self, Lenient},
    limits::{INLINE, INLINE_TOTAL, OUTPUT},
    lines::Lines,
    texts::keep_end,
    values::inline,
};

/// Maximum number of attempts that run at the same time.
const MOST_OPEN: usize = 1000;

/// Media type of what steps log.
const LOG: &str = "text/x.cucumber.log+plain";

/// The format of Cucumber messages.
pub struct CucumberMessages;

impl Format for CucumberMessages {
    fn name(&self) -> &'static str {
        "Cucumber messages"
    }

    fn recognizes(&self, head: &Head) -> bool {
        let names = ["meta", "source", "gherkinDocument", "pickle", "hook", "testRunStarted"];
        head.object().is_some_and(|json| {
            let name = json.first_name();
            names.contains(&name) && (name != "meta" || json.has(2, "protocolVersion"))
        })
    }

    fn read(&self, file: &mut dyn BufRead, sink: Sink<'_>) -> Result<(), Fault> {
        let replaced = sink.replaced();
        let (definitions, running, tests, hooks, end) = Default::default();
        let mut report = Report { definitions, running, tests, hooks, end, sink };
        let mut lines = Lines::new(self.name(), Lenient::new(file, replaced));
        while let Some((number, line)) = lines.next()? {
            if line.trim_ascii().is_empty() {
                continue;
            }
            if let Some(envelope) = json::parse(line, number, report.sink) {
                report.add(envelope, number)?;
            }
        }
        report.finish()
    }
}

/// An attempt that runs.
struct Running {
    case: String,
    started: Time,
    attempt: Attempt,
    /// Space for attachments, in bytes.
    room: usize,
}

/// State of the reader.
struct Report<'s> {
    definitions: Definitions,
    /// Attempts that run, by id.
    running: HashMap<String, Running>,
    /// Tests that will be retried, by the id of the test case.
    tests: HashMap<String, Test>,
    /// Names of the hooks of the run, by their ids and by those of their starts.
    hooks: HashMap<String, String>,
    end: Option<RunFinished>,
    sink: Sink<'s>,
}

impl Report<'_> {
    fn add(&mut self, envelope: Envelope, line: usize) -> Result<(), Fault> {
        if let Some(document) = envelope.gherkin_document {
            self.definitions.add_document(document);
        } else if let Some(pickle) = envelope.pickle {
            self.definitions.add_pickle(pickle);
        } else if let Some(case) = envelope.test_case {
            self.definitions.add_case(case);
        } else if let Some(started) = envelope.test_case_started {
            self.start(started);
        } else if let Some(step) = envelope.test_step_finished {
            self.add_step(step);
        } else if let Some(attachment) = envelope.attachment {
            self.add_attachment(attachment);
        } else if let Some(finished) = envelope.test_case_finished {
            return self.end(&finished);
        } else if let Some(error) = envelope.parse_error {
            let nature = Nature::Error;
            let problem = Problem { nature, message: error.message.0, ..Problem::default() };
            let attempts = vec![Attempt::with(vec![problem])];
            return self.sink.add(Test { name: error.source.uri.0, attempts, ..Test::default() });
        } else if let Some(hook) = envelope.hook {
            self.add_hook(hook);
        } else if let Some(started) = envelope.test_run_hook_started {
            let name = self.hooks.get(&started.hook_id.0).cloned().unwrap_or_default();
            self.hooks.insert(started.id.0, name);
        } else if let Some(finished) = envelope.test_run_hook_finished {
            self.end_hook(finished)?;
        } else if let Some(finished) = envelope.test_run_finished {
            self.end = Some(finished);
        }
        let place = format!("line {line}");
        let open = self.running.len().max(self.tests.len()).max(self.hooks.len());
        if open > MOST_OPEN {
            let problem = format!("more than {MOST_OPEN} test cases run at the same time");
            return Err(excessive(CucumberMessages.name(), &place, problem));
        }
        self.definitions.check(CucumberMessages.name(), &place)
    }

    fn start(&mut self, started: TestCaseStarted) {
        let attempt = Attempt { start: started.timestamp.time(), ..Attempt::default() };
        let case = started.test_case_id.0;
        let running = Running { case, started: started.timestamp, attempt, room: INLINE_TOTAL };
        self.running.insert(started.id.0, running);
    }

    fn add_step(&mut self, finished: TestStepFinished) {
        let Some(running) = self.running.get_mut(&finished.attempt_id.0) else { return };
        let StepResult { status, duration: time, message } = finished.result;
        let (name, is_hook) = self.definitions.step(&running.case, &finished.step_id.0);
        let result = result(&status.0);
        let message = match message.0.trim() {
            "" => explanation(&status.0, &name),
            message => message.to_owned(),
        };
        let is_shown = !is_hook || result != TestResult::Passed;
        if is_shown {
            let seconds = duration(time.seconds());
            add(&mut running.attempt, Step { depth: 0, name, result, seconds, message });
        }
    }

    fn add_attachment(&mut self, reported: ReportedAttachment) {
        let id = &reported.test_case_started_id.0;
        let Some(Running { attempt, room, .. }) = self.running.get_mut(id) else { return };
        let is_base64 = reported.content_encoding.0 == "BASE64";
        if reported.media_type.0 == LOG && !is_base64 {
            keep_end(&mut attempt.output, &reported.body.0, OUTPUT);
            keep_end(&mut attempt.output, "\n", OUTPUT);
        } else {
            let body = reported.body.0;
            let content = if is_base64 {
                inline(&body, room)
            } else if body.len() <= INLINE.min(*room) {
                *room -= body.len();
                Content::Inline(body.into_bytes())
            } else {
                Content::Dropped
            };
            let (name, media_type) = (reported.file_name.0, reported.media_type.0);
            attempt.attach(Attachment { name, media_type, content });
        }
    }

    fn end(&mut self, finished: &TestCaseFinished) -> Result<(), Fault> {
        let id = &finished.test_case_started_id.0;
        let Some(Running { case, started, mut attempt, .. }) = self.running.remove(id) else {
            return Ok(());
        };
        let end = finished.timestamp.seconds();
        let between = end.zip(started.seconds()).map(|(end, start)| end - start);
        attempt.seconds = duration(between);
        complete(&mut attempt, None);
        self.close(case, attempt, finished.will_be_retried)
    }

    /// Adds an attempt to its test, and passes the test on unless it will be retried.
    fn close(&mut self, case: String, attempt: Attempt, is_retried: bool) -> Result<(), Fault> {
        let earlier = self.tests.remove(&case);
        let mut test = earlier.unwrap_or_else(|| self.definitions.test(&case));
        (test.start, test.seconds) = (attempt.start, attempt.seconds);
        test.push(attempt);
        if is_retried {
            self.tests.insert(case, test);
            return Ok(());
        }
        self.definitions.remove(&case);
        self.sink.add(test)
    }

    /// Keeps the name of a hook of the run. Those of scenarios are steps of theirs.
    fn add_hook(&mut self, hook: Hook) {
        let kind = match hook.r#type.0.as_str() {
            "BEFORE_TEST_RUN" => "BeforeAll",
            "AFTER_TEST_RUN" => "AfterAll",
            _ => return,
        };
        let name = hook.name.0.trim();
        let name = if name.is_empty() { kind.to_owned() } else { format!("{kind}: {name}") };
        self.hooks.insert(hook.id.0, name);
    }

    /// Passes on a hook of the run that failed.
    fn end_hook(&mut self, finished: RunHookFinished) -> Result<(), Fault> {
        let name = self.hooks.remove(&finished.test_run_hook_started_id.0).unwrap_or_default();
        let name = if name.is_empty() { "Hook".to_owned() } else { name };
        let Some(nature) = Nature::of(result(&finished.result.status.0)) else { return Ok(()) };
        let problem = Problem { nature, message: finished.result.message.0, ..Problem::default() };
        self.sink.add_own(Test { name, ..Test::default() }, problem)
    }

    /// Passes on the tests that did not finish, and the run if nothing explains its failure.
    fn finish(mut self) -> Result<(), Fault> {
        let mut running: Vec<Running> = std::mem::take(&mut self.running).into_values().collect();
        running.sort_by(|one, other| one.case.cmp(&other.case));
        for Running { case, mut attempt, .. } in running {
            complete(&mut attempt, Some(TestResult::Aborted));
            self.close(case, attempt, false)?;
        }
        let mut tests: Vec<_> = std::mem::take(&mut self.tests).into_iter().collect();
        tests.sort_by(|one, other| one.0.cmp(&other.0));
        tests.into_iter().try_for_each(|(_, test)| self.sink.add(test))?;
        for case in self.definitions.unstarted() {
            let attempt = Attempt { result: TestResult::Aborted, ..Attempt::default() };
            self.close(case, attempt, false)?;
        }
        let Some(end) = self.end else {
            let message = "The report ends before the run did.";
            return self.sink.fail_run(Nature::Abortion, message);
        };
        if end.success != Some(false) || self.sink.tally().red > 0 {
            return Ok(());
        }
        let reasons = [end.exception.message.0, end.message.0, "The run failed.".to_owned()];
        let message = reasons.into_iter().find(|text| !text.is_empty()).unwrap_or_default();
        self.sink.fail_run(Nature::Error, &message)
    }
}
