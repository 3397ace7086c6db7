//! Writes tests as CTRF. The reader reads the same tests, with times in milliseconds.

use std::collections::BTreeMap;

use assay_proto::{TestResult, Timestamp};
use base64::{Engine, prelude::BASE64_STANDARD};
use chrono::SecondsFormat;
use serde::Serialize;
use serde_json::{Value, json};

use crate::{Attachment, Attempt, Content, Property, Step, Test};

/// Version of the specification.
const VERSION: &str = "1.0.0";

/// Writes a report in parts, so that its size does not matter.
#[derive(Debug, Default)]
pub struct CtrfWriter {
    summary: Summary,
}

/// Numbers of tests by status, and the times of the run in milliseconds since 1970.
#[derive(Clone, Copy, Debug, Default, Serialize)]
struct Summary {
    tests: u64,
    passed: u64,
    failed: u64,
    skipped: u64,
    pending: u64,
    other: u64,
    flaky: u64,
    start: i64,
    stop: i64,
}

/// Members that a test has in common with each of its attempts.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Outcome<'t> {
    status: &'static str,
    duration: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    start: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stop: Option<i64>,
    #[serde(skip_serializing_if = "str::is_empty")]
    message: &'t str,
    #[serde(skip_serializing_if = "String::is_empty")]
    trace: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    stdout: Vec<&'t str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    attachments: Vec<Value>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Written<'t> {
    name: &'t str,
    #[serde(flatten)]
    outcome: Outcome<'t>,
    #[serde(skip_serializing_if = "Option::is_none")]
    raw_status: Option<&'static str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    suite: Vec<&'t str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tags: Vec<&'t str>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    labels: BTreeMap<&'t str, Vec<&'t str>>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    parameters: BTreeMap<&'t str, &'t str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    steps: Vec<Value>,
    retries: usize,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    retry_attempts: Vec<Value>,
    flaky: bool,
    extra: Value,
}

impl CtrfWriter {
    /// Returns the beginning of a report with this id (a UUID), written at this time by this tool.
    pub fn open(&self, id: &str, time: Timestamp, tool: &str) -> String {
        let head = json!({
            "reportFormat": "CTRF",
            "specVersion": VERSION,
            "reportId": id,
            "timestamp": time.0.to_rfc3339_opts(SecondsFormat::Millis, true),
            "generatedBy": tool,
        });
        let tool = json!({ "name": if tool.is_empty() { "unknown" } else { tool } });
        let head = head.to_string();
        let head = head.strip_suffix('}').unwrap_or(&head);
        format!("{head},\"results\":{{\"tool\":{tool},\"tests\":[\n")
    }

    /// Writes a test.
    pub fn test(&mut self, json: &mut String, test: &Test) {
        if self.summary.tests > 0 {
            json.push_str(",\n");
        }
        let written = Written::new(test);
        self.summary.add(&written);
        json.push_str(&serde_json::to_string(&written).expect("all values are JSON"));
    }

    /// Returns the end of the report, with the summary of the tests.
    pub fn close(self) -> String {
        let summary = serde_json::to_string(&self.summary).expect("all values are JSON");
        format!("\n],\"summary\":{summary}}}}}\n")
    }
}

impl Summary {
    fn add(&mut self, test: &Written<'_>) {
        let counter = match test.outcome.status {
            "passed" => &mut self.passed,
            "failed" => &mut self.failed,
            "skipped" => &mut self.skipped,
            "pending" => &mut self.pending,
            _ => &mut self.other,
        };
        *counter += 1;
        self.tests += 1;
        self.flaky += u64::from(test.flaky);
        if let (Some(start), Some(stop)) = (test.outcome.start, test.outcome.stop) {
            self.start = if self.start == 0 { start } else { self.start.min(start) };
            self.stop = self.stop.max(stop);
        }
    }
}

impl<'t> Written<'t> {
    fn new(test: &'t Test) -> Self {
        let (last, earlier) = match test.attempts.split_last() {
            Some((last, earlier)) => (Some(last), earlier),
            None => (None, &[][..]),
        };
        let result = test.result();
        let mut suite: Vec<&str> = test.suites.iter().map(String::as_str).collect();
        suite.push(&test.class);
        suite.retain(|name| !name.is_empty());
        let (mut tags, mut labels) = (Vec::new(), BTreeMap::<_, Vec<_>>::new());
        for Property { name, value } in &test.labels {
            if name == "tag" {
                tags.push(value.as_str());
            } else {
                labels.entry(name.as_str()).or_default().push(value.as_str());
            }
        }
        let parameters = test.parameters.iter();
        let attempts = earlier.iter().zip(1..).map(|(attempt, number)| {
            let mut value = json!(Outcome::new(attempt));
            value["attempt"] = json!(number);
            value["extra"] = json!({ "rawStatus": raw_status(attempt.result) });
            value
        });
        let links = test.links.iter();
        let links: Vec<Value> =
            links.map(|link| json!({ "type": link.kind, "description": link.target })).collect();
        Self {
            name: if test.name.is_empty() { "unnamed" } else { &test.name },
            outcome: last.map_or_else(Outcome::missing, Outcome::new),
            raw_status: raw_status(result),
            suite,
            tags,
            labels,
            parameters: parameters.map(|p| (p.name.as_str(), p.value.as_str())).collect(),
            steps: last.map_or_else(Vec::new, |last| last.steps.iter().map(step).collect()),
            retries: earlier.len(),
            retry_attempts: attempts.collect(),
            flaky: test.is_flaky(),
            // CTRF has no tests without names.
            extra: json!({
                "id": test.id,
                "class": test.class,
                "annotations": links,
                "isUnnamed": test.name.is_empty(),
            }),
        }
    }
}

impl<'t> Outcome<'t> {
    fn new(attempt: &'t Attempt) -> Self {
        let start = attempt.start.map(|start| start.0.timestamp_millis());
        let duration = milliseconds(attempt.seconds);
        let message = attempt.problems.first().map_or(&attempt.reason, |problem| &problem.message);
        // Further problems follow the stack trace of the first one.
        let others = attempt.problems.iter().skip(1);
        let others = others.flat_map(|problem| [problem.message.as_str(), problem.text.as_str()]);
        let texts = attempt.problems.first().map(|problem| problem.text.as_str());
        let texts = texts.into_iter().chain(others).filter(|text| !text.is_empty());
        Self {
            status: status(attempt.result),
            duration,
            start,
            stop: start.map(|start| start + duration),
            message,
            trace: texts.collect::<Vec<_>>().join("\n\n"),
            stdout: Some(attempt.output.as_str())
                .filter(|text| !text.is_empty())
                .into_iter()
                .collect(),
            attachments: attempt.attachments.iter().filter_map(attachment).collect(),
        }
    }

    /// Returns the outcome of a test that did not run.
    fn missing() -> Self {
        Self {
            status: status(TestResult::NotExecuted),
            duration: 0,
            start: None,
            stop: None,
            message: "",
            trace: String::new(),
            stdout: Vec::new(),
            attachments: Vec::new(),
        }
    }
}

fn step(step: &Step) -> Value {
    json!({
        "name": step.name,
        "status": status(step.result),
        "extra": {
            "rawStatus": raw_status(step.result),
            "depth": step.depth,
            "duration": milliseconds(step.seconds),
            "message": step.message,
        },
    })
}

/// Returns an attachment with a path, which may be a URL with the contents.
fn attachment(attachment: &Attachment) -> Option<Value> {
    let Attachment { name, media_type, content } = attachment;
    let path = match content {
        Content::Path(path) | Content::Artifact(path) => path.clone(),
        Content::Inline(bytes) => {
            format!("data:{media_type};base64,{}", BASE64_STANDARD.encode(bytes))
        }
        Content::Dropped => return None,
    };
    Some(json!({ "name": name, "contentType": media_type, "path": path }))
}

fn milliseconds(seconds: f64) -> i64 {
    #[expect(clippy::cast_possible_truncation, reason = "durations are plausible")]
    let milliseconds = (seconds * 1e3).round() as i64;
    milliseconds
}

fn status(result: TestResult) -> &'static str {
    match result {
        TestResult::Passed => "passed",
        TestResult::Failed | TestResult::Error | TestResult::Aborted => "failed",
        TestResult::Canceled => "skipped",
        TestResult::NotExecuted | TestResult::Unspecified => "pending",
    }
}

/// Returns the result, if the status does not express it.
fn raw_status(result: TestResult) -> Option<&'static str> {
    match result {
        TestResult::Error => Some("error"),
        TestResult::Aborted => Some("aborted"),
        TestResult::NotExecuted => Some("notExecuted"),
        _ => None,
    }
}
