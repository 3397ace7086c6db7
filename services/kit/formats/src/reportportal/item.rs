//! Items: suites, tests, hooks and steps.

use std::hash::Hash;

use assay_proto::{TestResult, Timestamp};
use serde_json::Value;

use super::ItemId;
use crate::{
    Attachment, Content, Nature, Property,
    limits::{INLINE, MESSAGE, MOST_ATTACHMENTS, MOST_LABELS, OUTPUT, STEP, TEXT},
    names::named,
    texts::{beginning, keep_beginning, keep_end},
    times::{since_1970, time},
};

/// Maximum memory of a file of an item, in bytes: its names, which are not its contents.
const FILE: usize = 3 * STEP;

/// An item, as far as its requests have arrived.
#[derive(Default)]
pub(super) struct Item {
    /// Position among the items; none before the request that starts it.
    pub(super) sequence: Option<usize>,
    pub(super) parent: Option<ItemId>,
    pub(super) name: String,
    kind: String,
    pub(super) start: Option<Timestamp>,
    has_stats: bool,
    code_ref: String,
    case_id: String,
    /// Values of the parameters.
    parameters: Vec<String>,
    /// Attributes that the user has chosen.
    pub(super) labels: Vec<Property>,
    pub(super) is_retry: bool,
    /// The end and the outcome; none before the request that finishes it.
    pub(super) finished: Option<Finished>,
    /// Beginning of the logs of level `ERROR`.
    pub(super) errors: String,
    /// End of the other logs.
    pub(super) output: String,
    /// All logs, as long as there is room.
    pub(super) log: String,
    pub(super) files: Vec<Attachment>,
    was_logged: bool,
}

/// The end of an item.
pub(super) struct Finished {
    pub(super) time: Option<Timestamp>,
    /// None if its children determine the result.
    pub(super) result: Option<TestResult>,
    pub(super) description: String,
    /// Comment and tickets of its issue.
    pub(super) issue: String,
}

/// A log.
pub(super) struct Log {
    level: String,
    message: String,
    file: Option<Attachment>,
}

impl Item {
    pub(super) fn start(&mut self, parent: Option<ItemId>, sequence: usize, body: &Value) {
        if self.sequence.is_some() {
            return;
        }
        self.sequence = Some(sequence);
        self.parent = parent;
        self.name = named(text(body, "name"));
        self.kind = text(body, "type").to_ascii_uppercase();
        self.start = time_of(&body["startTime"]);
        self.has_stats = body["hasStats"].as_bool() != Some(false);
        self.code_ref = named(text(body, "codeRef"));
        let case_id = named(text(body, "testCaseId"));
        if !case_id.is_empty() {
            self.case_id = case_id;
        }
        self.is_retry = body["retry"] == true;
        let parameters = body["parameters"].as_array().into_iter().flatten();
        let value = |parameter: &Value| match &parameter["value"] {
            Value::String(text) => named(text),
            other => named(&other.to_string()),
        };
        self.parameters = parameters.take(MOST_LABELS).map(value).collect();
        self.add_labels(body);
    }

    /// Adds the attributes of a request, except those of the agent itself.
    fn add_labels(&mut self, body: &Value) {
        let attributes = body["attributes"].as_array().into_iter().flatten();
        let of_user = attributes.filter(|attribute| attribute["system"] != true);
        for attribute in of_user.take(MOST_LABELS.saturating_sub(self.labels.len())) {
            let label = Property::new(text(attribute, "key"), text(attribute, "value"));
            if !self.labels.contains(&label) {
                self.labels.push(label);
            }
        }
    }

    pub(super) fn finish(&mut self, body: &Value) {
        if self.finished.is_some() {
            return;
        }
        if self.case_id.is_empty() {
            self.case_id = named(text(body, "testCaseId"));
        }
        self.add_labels(body);
        self.finished = Some(Finished {
            time: time_of(&body["endTime"]),
            result: result_of(body),
            description: beginning(&without_fences(text(body, "description")), TEXT),
            issue: issue(&body["issue"]),
        });
    }

    /// Adds a log. Returns by how much the item has grown, in bytes.
    pub(super) fn log(&mut self, log: Log, room: &mut usize) -> usize {
        let size = |item: &Self| item.errors.len() + item.output.len() + item.log.len();
        let (before, files) = (size(self), self.files.len());
        self.was_logged = true;
        let line = log.line();
        if log.level == "ERROR" || log.level == "FATAL" {
            keep_beginning(&mut self.errors, &line, TEXT);
        } else {
            keep_end(&mut self.output, &line, OUTPUT);
        }
        let fits = line.len().min(*room).min(INLINE.saturating_sub(self.log.len()));
        keep_beginning(&mut self.log, &line[..line.floor_char_boundary(fits)], INLINE);
        *room -= fits;
        if self.files.len() < MOST_ATTACHMENTS {
            self.files.extend(log.file);
        }
        size(self).saturating_sub(before) + (self.files.len() - files) * FILE
    }

    /// Whether the item runs before others, or prepares or cleans up otherwise.
    pub(super) fn is_setup(&self) -> bool {
        self.kind.starts_with("BEFORE_")
    }

    pub(super) fn is_hook(&self) -> bool {
        self.is_setup() || self.kind.starts_with("AFTER_")
    }

    /// Whether the item counts in the statistics of its launch. Hooks and nested steps do not.
    pub(super) fn is_counted(&self) -> bool {
        self.has_stats && !self.is_hook()
    }

    /// Returns the failure that the agent itself reports of the item.
    pub(super) fn failure(&self) -> Option<Nature> {
        self.finished.as_ref().and_then(|finished| finished.result).and_then(Nature::of)
    }

    /// Whether the item is a test if it contains none.
    pub(super) fn can_be_test(&self) -> bool {
        self.is_counted() && matches!(self.kind.as_str(), "STEP" | "TEST" | "SCENARIO")
    }

    pub(super) fn is_step(&self) -> bool {
        self.kind == "STEP"
    }

    /// Whether another request than the one that starts the item refers to it.
    pub(super) fn is_used(&self) -> bool {
        self.finished.is_some() || self.was_logged
    }

    /// Returns what was requested. The same request may have started two items of which it is the same: an
    /// agent that received no answer sends it again.
    pub(super) fn request(&self) -> impl Eq + Hash {
        let place = (self.parent, self.start.map(|start| start.0), self.is_retry);
        (place, self.name.clone(), self.kind.clone(), self.own_identity())
    }

    /// Returns the identity that the agent gives the item, if it is the same in every launch.
    pub(super) fn own_identity(&self) -> Option<String> {
        if !self.case_id.is_empty() {
            return Some(self.case_id.clone());
        }
        // Robot Framework and Behave refer to the line, which changes.
        let line = self.code_ref.rsplit_once(':').map(|(_, line)| line);
        let has_line = line.is_some_and(|line| line.parse::<u32>().is_ok());
        if self.code_ref.is_empty() || has_line {
            return None;
        }
        Some(match self.parameters.join(",").as_str() {
            "" => self.code_ref.clone(),
            parameters => format!("{}[{parameters}]", self.code_ref),
        })
    }

    /// Returns the duration in seconds; 0 if it is not known.
    pub(super) fn seconds(&self) -> f64 {
        let end = self.finished.as_ref().and_then(|finished| finished.time);
        let between = self.start.zip(end).map(|(start, end)| (end.0 - start.0).as_seconds_f64());
        crate::durations::duration(between)
    }

    /// Returns the description of the end; empty if there is none.
    pub(super) fn description(&self) -> &str {
        self.finished.as_ref().map_or("", |finished| finished.description.as_str())
    }

    /// Returns the comment and the tickets of its issue; empty if there are none.
    pub(super) fn issue(&self) -> &str {
        self.finished.as_ref().map_or("", |finished| finished.issue.as_str())
    }

    /// Returns the texts of the item: errors first.
    pub(super) fn texts(&self) -> String {
        let mut texts: Vec<&str> = Vec::new();
        for part in [self.description(), &self.errors, &self.output].map(str::trim) {
            // JavaScript agents log the description as well.
            if !part.is_empty() && !texts.iter().any(|text| text.contains(part)) {
                texts.push(part);
            }
        }
        texts.join("\n")
    }
}

impl Log {
    pub(super) fn of(body: &Value) -> Self {
        let file = &body["file"];
        let file = Some(text(file, "artifact")).filter(|name| !name.is_empty()).map(|artifact| {
            Attachment {
                name: beginning(text(file, "name"), STEP),
                media_type: beginning(text(file, "contentType"), STEP),
                content: Content::Artifact(artifact.to_owned()),
            }
        });
        let level = text(body, "level").to_ascii_uppercase();
        Self { level, message: text(body, "message").to_owned(), file }
    }

    /// Returns the message as a line.
    pub(super) fn line(&self) -> String {
        format!("{}\n", crate::values::without_colours(self.message.trim_end()))
    }
}

fn text<'v>(object: &'v Value, field: &str) -> &'v str {
    object[field].as_str().unwrap_or_default()
}

/// Returns a time: ISO 8601, or milliseconds since 1970 as a number or a text.
fn time_of(value: &Value) -> Option<Timestamp> {
    match value {
        Value::Number(number) => since_1970(number.as_f64()),
        Value::String(text) => match text.parse() {
            Ok(number) => since_1970(Some(number)),
            Err(_) => time(text),
        },
        _ => None,
    }
}

/// Returns the result that a request which finishes an item or a launch has.
pub(super) fn result_of(body: &Value) -> Option<TestResult> {
    result(text(body, "status"))
}

/// Returns the result of a status, if there is one. Behave has `ERROR`, which ReportPortal
/// does not. Only what passed is passed.
fn result(status: &str) -> Option<TestResult> {
    Some(match status.to_ascii_uppercase().as_str() {
        "" => return None,
        "PASSED" => TestResult::Passed,
        "FAILED" => TestResult::Failed,
        "SKIPPED" | "CANCELLED" | "INFO" | "WARN" | "RESETED" => TestResult::Canceled,
        "STOPPED" | "INTERRUPTED" | "IN_PROGRESS" => TestResult::Aborted,
        _ => TestResult::Error,
    })
}

/// Returns the comment and the tickets of an issue.
fn issue(issue: &Value) -> String {
    if text(issue, "issueType").eq_ignore_ascii_case("NOT_ISSUE")
        || text(issue, "issue_type").eq_ignore_ascii_case("NOT_ISSUE")
    {
        return String::new();
    }
    let tickets = issue["externalSystemIssues"].as_array().into_iter().flatten();
    let parts = [text(issue, "comment")].into_iter().chain(tickets.map(|ticket| {
        let url = text(ticket, "url");
        if url.is_empty() { text(ticket, "ticketId") } else { url }
    }));
    let parts: Vec<&str> = parts.filter(|part| !part.is_empty()).collect();
    beginning(&parts.join(" "), MESSAGE)
}

/// Returns a text without the fences of Markdown that JavaScript agents put around errors.
fn without_fences(text: &str) -> String {
    let plain = crate::values::without_colours(text);
    let lines = plain.lines().filter(|line| !line.trim_start().starts_with("```"));
    lines.collect::<Vec<_>>().join("\n").trim().to_owned()
}
