//! A spec with its tests and their results.

use assay_proto::TestResult;
use serde::Deserialize;

use crate::{
    Attachment, Attempt, Content, Link, Nature, Problem, Property, Step, Test,
    durations::duration,
    json::{List, Name, Number, Tail, Text},
    limits::{
        DEEPEST, INLINE, MESSAGE, MOST_ATTACHMENTS, MOST_ATTEMPTS, MOST_LABELS, MOST_PROBLEMS,
        MOST_STEPS, OUTPUT, STEP, TEXT,
    },
    names::named,
    texts::keep_end,
    times::time,
    values::{inline, without_colours},
};

/// Maximum number of tests of a spec: one for each project and repetition.
const MOST_TESTS: usize = 10_000;

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Spec {
    title: Name,
    tags: List<Text<MESSAGE>, MOST_LABELS>,
    tests: List<ProjectTest, MOST_TESTS>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ProjectTest {
    annotations: List<Annotation, MOST_LABELS>,
    expected_status: Text<32>,
    project_name: Text<256>,
    results: List<Outcome, MOST_ATTEMPTS>,
    /// `expected`, `unexpected`, `flaky` or `skipped`.
    status: Text<32>,
}

#[derive(Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(super) struct Annotation {
    r#type: Text<256>,
    description: Text<MESSAGE>,
}

/// An attempt.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Outcome {
    /// Id in blob reports.
    pub(super) id: Text<256>,
    /// `passed`, `failed`, `timedOut`, `skipped` or `interrupted`.
    status: Text<32>,
    start_time: Text<64>,
    /// Milliseconds.
    duration: Number,
    error: Option<Failure>,
    errors: List<Failure, MOST_PROBLEMS>,
    stdout: Tail,
    stderr: Tail,
    steps: List<ReportedStep, MOST_STEPS>,
    pub(super) attachments: List<ReportedAttachment, MOST_ATTACHMENTS>,
    /// Those that the test added while it ran, in blob reports.
    pub(super) annotations: List<Annotation, MOST_LABELS>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Failure {
    pub(super) message: Text<MESSAGE>,
    stack: Text<TEXT>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ReportedStep {
    title: Text<STEP>,
    duration: Number,
    error: Option<Failure>,
    steps: List<ReportedStep, MOST_STEPS>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct ReportedAttachment {
    name: Text<MESSAGE>,
    content_type: Text<256>,
    pub(super) path: Text<MESSAGE>,
    /// Base64.
    #[serde(alias = "base64")]
    body: Option<Text<{ INLINE / 3 * 4 + 8 }>>,
}

impl ReportedAttachment {
    /// Returns its approximate memory, in bytes.
    pub(super) fn size(&self) -> usize {
        let body = self.body.as_ref().map_or(0, |body| body.0.len());
        self.name.0.len() + self.content_type.0.len() + self.path.0.len() + body + 100
    }
}

impl Spec {
    /// Returns the test of each project. The titles are those of the suites.
    pub(super) fn into_tests(self, titles: &[String]) -> impl Iterator<Item = Test> {
        let (class, titles) =
            titles.split_first().map_or(("", titles), |(file, rest)| (file, rest));
        let titles = titles.iter().map(String::as_str).filter(|title| !title.is_empty());
        let name = titles.chain([&*self.title.0]).collect::<Vec<_>>().join(" › ");
        let name = named(&name);
        let class = class.to_owned();
        let labels: Vec<Property> =
            self.tags.0.iter().map(|tag| Property::new("tag", &tag.0)).collect();
        self.tests.0.into_iter().map(move |reported| {
            let test = Test {
                class: class.clone(),
                name: name.clone(),
                labels: labels.clone(),
                ..Test::default()
            };
            reported.complete(test)
        })
    }
}

impl ProjectTest {
    fn complete(self, mut test: Test) -> Test {
        describe(&mut test, &self.project_name.0, &self.annotations.0);
        for outcome in self.results.0 {
            test.push(outcome.into_attempt(&self.expected_status.0));
        }
        close(&mut test, &self.annotations.0);
        test
    }
}

/// Adds the project and annotations to a test.
pub(super) fn describe(test: &mut Test, project: &str, annotations: &[Annotation]) {
    if !project.is_empty() {
        test.parameters.push(Property::new("Project", project));
    }
    for Annotation { r#type, description } in annotations {
        test.links.extend(Link::of(&r#type.0, &description.0));
        if !description.0.is_empty() && test.labels.len() < MOST_LABELS {
            test.labels.push(Property::new(&r#type.0, &description.0));
        }
    }
}

/// Completes a test that has all of its attempts.
pub(super) fn close(test: &mut Test, annotations: &[Annotation]) {
    // Playwright does not count attempts that did not run beside others: the rest of a serial suite is skipped
    // after a failure, and retried with it.
    let has_run = |attempt: &Attempt| attempt.result != TestResult::NotExecuted;
    if test.attempts.iter().any(has_run) {
        test.attempts.retain(has_run);
    }
    for attempt in &mut test.attempts {
        if attempt.result == TestResult::NotExecuted {
            attempt.result = TestResult::Canceled;
        }
    }
    if test.attempts.is_empty() {
        // A run that was stopped has tests without results, also of the status `skipped`.
        let mut kinds = annotations.iter().map(|annotation| annotation.r#type.0.as_str());
        let is_skipped = kinds.any(|kind| matches!(kind, "skip" | "fixme"));
        let result = if is_skipped { TestResult::Canceled } else { TestResult::Aborted };
        test.push(Attempt { result, ..Attempt::default() });
    }
    test.start = test.attempts.last().and_then(|attempt| attempt.start);
    test.seconds = test.attempts.last().map_or(0.0, |attempt| attempt.seconds);
}

impl Outcome {
    pub(super) fn into_attempt(self, expected: &str) -> Attempt {
        let status = self.status.0.as_str();
        let is_expected = status == expected;
        let result = match status {
            // The test itself did so, maybe only when it was retried.
            "skipped" if is_expected => TestResult::Canceled,
            "skipped" => TestResult::NotExecuted,
            // Also a test that is expected to fail and does.
            _ if is_expected => TestResult::Passed,
            "timedOut" => TestResult::Error,
            "interrupted" => TestResult::Aborted,
            _ => TestResult::Failed,
        };
        let mut problems = Vec::new();
        if let Some(nature) = Nature::of(result) {
            // The first error has a stack trace only here.
            let first = self.error.into_iter().map(|failure| failure.into_problem(nature));
            let others = self.errors.0.into_iter().skip(usize::from(first.len() > 0));
            problems.extend(first.chain(others.map(|failure| failure.into_problem(nature))));
            if problems.is_empty() {
                let message = format!("The test {status}, but was expected to have {expected}.");
                problems.push(Problem { nature, message, ..Problem::default() });
            }
            problems.truncate(MOST_PROBLEMS);
        }
        let mut steps = Vec::new();
        for step in self.steps.0 {
            step.add_to(&mut steps, 0);
        }
        let mut output = self.stdout.0;
        keep_end(&mut output, &self.stderr.0, OUTPUT);
        let mut room = crate::limits::INLINE_TOTAL;
        let attachments =
            self.attachments.0.into_iter().map(|file| file.into_attachment(&mut room));
        Attempt {
            start: time(&self.start_time.0),
            seconds: duration(self.duration.0.map(|milliseconds| milliseconds / 1e3)),
            result,
            reason: String::new(),
            problems,
            steps,
            output,
            attachments: attachments.collect(),
        }
    }
}

impl Failure {
    pub(super) fn into_problem(self, nature: Nature) -> Problem {
        let message = without_colours(&self.message.0);
        Problem { nature, message, text: without_colours(&self.stack.0) }
    }
}

impl ReportedStep {
    fn add_to(self, steps: &mut Vec<Step>, depth: usize) {
        if steps.len() >= MOST_STEPS || depth > DEEPEST {
            return;
        }
        let result = if self.error.is_some() { TestResult::Failed } else { TestResult::Passed };
        let message = self.error.map(|error| without_colours(&error.message.0)).unwrap_or_default();
        let seconds = duration(self.duration.0.map(|milliseconds| milliseconds / 1e3));
        steps.push(Step { depth, name: self.title.0, result, seconds, message });
        for step in self.steps.0 {
            step.add_to(steps, depth + 1);
        }
    }
}

impl ReportedAttachment {
    fn into_attachment(self, room: &mut usize) -> Attachment {
        let content = match self.body {
            Some(body) => inline(&body.0, room),
            None => Content::Path(self.path.0),
        };
        Attachment { name: self.name.0, media_type: self.content_type.0, content }
    }
}
