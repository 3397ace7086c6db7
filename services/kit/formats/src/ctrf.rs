//! CTRF, the Common Test Report Format (<https://ctrf.io>).

mod identity;
mod writer;

use std::io::BufRead;

use assay_proto::{Fault, TestResult};
use serde::{
    Deserialize,
    de::{DeserializeSeed, IgnoredAny, MapAccess, SeqAccess},
};

use self::identity::identify;
pub use self::writer::CtrfWriter;
use crate::{
    Attachment, Attempt, Content, Format, Head, Link, Nature, Problem, Property, Sink, Step, Test,
    durations::duration,
    json::{
        self, Array, Elements, Flag, List, Map, Members, Name, Number, Object, Output, Tail, Text,
    },
    limits::{
        DEEPEST, INLINE, MESSAGE, MOST_ATTACHMENTS, MOST_ATTEMPTS, MOST_LABELS, MOST_STEPS, OUTPUT,
        STEP, TEXT,
    },
    sink::Claims,
    texts::{beginning, keep_end},
    times::since_1970,
    values::{inline, without_colours},
};

/// The format of CTRF reports.
pub struct Ctrf;

impl Format for Ctrf {
    fn name(&self) -> &'static str {
        "CTRF JSON"
    }

    /// Older reports lack the name of the format.
    fn recognizes(&self, head: &Head) -> bool {
        head.object().is_some_and(|json| {
            json.has(1, "reportFormat") || (json.has(1, "results") && json.has(2, "tool"))
        })
    }

    fn read(&self, file: &mut dyn BufRead, sink: Sink<'_>) -> Result<(), Fault> {
        json::read(self.name(), file, sink, |json, output| {
            let (tool, claims) = Default::default();
            let mut report = Report { tool, claims, output };
            Object(&mut report).deserialize(json)?;
            let Report { claims, output, .. } = report;
            output.with(|sink| {
                let found = sink.tally();
                sink.compare(found, claims, &Test::default().of_run()).map(drop)
            })
        })
    }
}

/// State of the reader.
struct Report<'o, 's> {
    /// Name of the tool, which is written before the tests.
    tool: String,
    /// Numbers of the summary.
    claims: Claims,
    output: &'o mut Output<'s>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Summary {
    tests: Number,
    failed: Number,
    skipped: Number,
}

impl Members for Report<'_, '_> {
    fn member<'de, A: MapAccess<'de>>(&mut self, name: &str, map: &mut A) -> Result<(), A::Error> {
        match name {
            "results" => map.next_value_seed(Object(self)),
            "tool" => {
                let Map(members) = map.next_value()?;
                let name = members.into_iter().find(|member| member.name == "name");
                self.tool = name.map(|name| name.value).unwrap_or_default();
                Ok(())
            }
            "tests" => map.next_value_seed(Array(self)),
            "summary" => {
                let Summary { tests, failed, skipped } = map.next_value()?;
                let (tests, failures) = (tests.count(), failed.count());
                self.claims = Claims { tests, failures, skipped: skipped.count() };
                Ok(())
            }
            _ => map.next_value::<IgnoredAny>().map(drop),
        }
    }
}

impl Elements for Report<'_, '_> {
    fn element<'de, A: SeqAccess<'de>>(&mut self, sequence: &mut A) -> Result<bool, A::Error> {
        let Some(reported) = sequence.next_element::<Reported>()? else { return Ok(false) };
        self.output.add(reported.into_test(&self.tool))?;
        Ok(true)
    }
}

/// A test of a report, or one of its attempts.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Reported {
    name: Name,
    /// The suites as an array, or as a text with ` > ` between them.
    suite: Text<MESSAGE>,
    status: Text<32>,
    raw_status: Text<32>,
    start: Number,
    /// Milliseconds.
    duration: Number,
    message: Text<MESSAGE>,
    trace: Text<TEXT>,
    file_path: Text<MESSAGE>,
    retries: Number,
    flaky: Flag,
    retry_attempts: List<Reported, MOST_ATTEMPTS>,
    stdout: Tail,
    stderr: Tail,
    steps: List<ReportedStep, MOST_STEPS>,
    attachments: List<ReportedAttachment, MOST_ATTACHMENTS>,
    tags: List<Text<MESSAGE>, MOST_LABELS>,
    labels: Map,
    parameters: Map,
    browser: Text<256>,
    extra: Extra,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ReportedStep {
    name: Text<STEP>,
    status: Text<32>,
    extra: Extra,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ReportedAttachment {
    name: Text<MESSAGE>,
    content_type: Text<256>,
    /// Path, or a URL with the contents.
    path: Text<{ INLINE / 3 * 4 + 512 }>,
}

/// Additions of tools, and of Assay to what CTRF does not have.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Extra {
    /// Annotations of Playwright.
    annotations: List<Annotation, MOST_LABELS>,
    id: Name,
    class: Option<Name>,
    is_unnamed: Flag,
    raw_status: Text<32>,
    depth: Number,
    /// Milliseconds.
    duration: Number,
    message: Text<MESSAGE>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Annotation {
    r#type: Text<256>,
    description: Text<MESSAGE>,
}

impl Reported {
    fn into_test(mut self, tool: &str) -> Test {
        let mut test = Test::default();
        identify(&mut test, tool, &self);
        test.parameters.append(&mut self.parameters.0);
        if !self.browser.0.is_empty() && test.parameters.is_empty() {
            test.parameters.push(Property::new("Browser", &self.browser.0));
        }
        // A label with several values is one for each.
        test.labels = std::mem::take(&mut self.labels.0)
            .iter()
            .flat_map(|label| {
                label.value.split('\n').map(|value| Property::new(&label.name, value))
            })
            .collect();
        test.labels.extend(self.tags.0.iter().map(|tag| Property::new("tag", &tag.0)));
        test.labels.truncate(MOST_LABELS);
        for Annotation { r#type, description } in std::mem::take(&mut self.extra.annotations.0) {
            test.links.extend(Link::of(&r#type.0, &description.0));
        }
        // Some tools report only the number of retries.
        let earlier = std::mem::take(&mut self.retry_attempts.0);
        for _ in earlier.len()..small(self.retries).min(MOST_ATTEMPTS) {
            test.push(Attempt::unreported());
        }
        let mut earlier: Vec<Attempt> = earlier.into_iter().map(Self::into_attempt).collect();
        if tool == "playwright" {
            // It skips the rest of a serial suite after a failure, and retries it with the suite.
            earlier.retain(|attempt| attempt.result != TestResult::Canceled);
        }
        for attempt in earlier {
            test.push(attempt);
        }
        if self.flaky.0 && self.status.0 == "passed" && test.attempts.is_empty() {
            test.push(Attempt::unreported());
        }
        let last = self.into_attempt();
        (test.start, test.seconds) = (last.start, last.seconds);
        test.push(last);
        test
    }

    fn into_attempt(self) -> Attempt {
        let result = result(&self.status.0, first(&self.raw_status, &self.extra.raw_status));
        let message = without_colours(&self.message.0);
        let nature = Nature::of(result);
        let (mut problems, mut reason) = (Vec::new(), String::new());
        match nature {
            Some(nature) => {
                let text = without_colours(&self.trace.0);
                problems.push(Problem { nature, message, text });
            }
            None => reason = message,
        }
        let mut output = self.stdout.0;
        keep_end(&mut output, &self.stderr.0, OUTPUT);
        Attempt {
            start: since_1970(self.start.0),
            seconds: duration(self.duration.0.map(|milliseconds| milliseconds / 1e3)),
            result,
            reason,
            problems,
            steps: self.steps.0.into_iter().map(Step::from).collect(),
            output,
            attachments: self.attachments.0.into_iter().map(Attachment::from).collect(),
        }
    }
}

impl From<ReportedStep> for Step {
    fn from(ReportedStep { name, status, extra }: ReportedStep) -> Self {
        Self {
            depth: small(extra.depth).min(DEEPEST),
            name: name.0,
            result: result(&status.0, &extra.raw_status.0),
            seconds: duration(extra.duration.0.map(|milliseconds| milliseconds / 1e3)),
            message: extra.message.0,
        }
    }
}

impl From<ReportedAttachment> for Attachment {
    fn from(reported: ReportedAttachment) -> Self {
        let path = reported.path.0;
        let data = path.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,"));
        let content = match data {
            Some((_, base64)) => inline(base64, &mut { INLINE }),
            None => Content::Path(beginning(&path, MESSAGE)),
        };
        Self { name: reported.name.0, media_type: reported.content_type.0, content }
    }
}

/// Returns a number that is not negative, up to 255.
fn small(number: Number) -> usize {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "casts saturate")]
    let small = number.0.unwrap_or_default() as u8;
    usize::from(small)
}

fn first<'t, const MOST: usize>(one: &'t Text<MOST>, other: &'t Text<MOST>) -> &'t str {
    if one.0.is_empty() { &other.0 } else { &one.0 }
}

/// Returns the result for a status and the status that the tool itself reports.
fn result(status: &str, raw: &str) -> TestResult {
    match (status, raw.to_ascii_lowercase().as_str()) {
        ("passed", _) => TestResult::Passed,
        ("failed" | "other", "aborted" | "interrupted") => TestResult::Aborted,
        (
            "failed" | "other",
            "error" | "errored" | "broken" | "setup_failed" | "teardown_failed" | "timedout",
        ) => TestResult::Error,
        ("failed", _) => TestResult::Failed,
        ("pending", "notexecuted") => TestResult::NotExecuted,
        // An unfinished test, if its tool says no more.
        ("other", raw) => Nature::of_status(raw).map_or(TestResult::Canceled, Nature::result),
        _ => TestResult::Canceled,
    }
}
