//! A step of a result, with what results and steps have in common.

use assay_proto::TestResult;
use serde::Deserialize;

use crate::{
    Attachment, Attempt, Content, Nature, Problem, Step,
    durations::duration,
    json::{List, Number, Text},
    limits::{DEEPEST, MESSAGE, MOST_ATTACHMENTS, MOST_STEPS, STEP, TEXT},
};

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Details {
    pub(super) message: Text<MESSAGE>,
    pub(super) trace: Text<TEXT>,
}

impl Details {
    pub(super) fn problem(self, nature: Nature) -> Problem {
        Problem { nature, message: self.message.0.trim().to_owned(), text: self.trace.0 }
    }
}

/// A step of a result, or a fixture of a container.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct ReportedStep {
    name: Text<STEP>,
    status: Text<32>,
    status_details: Details,
    start: Number,
    stop: Number,
    steps: List<ReportedStep, MOST_STEPS>,
    attachments: List<ReportedAttachment, MOST_ATTACHMENTS>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct ReportedAttachment {
    name: Text<MESSAGE>,
    /// Name of a file.
    source: Text<MESSAGE>,
    r#type: Text<256>,
}

pub(super) fn attach(attempt: &mut Attempt, attachments: Vec<ReportedAttachment>) {
    for ReportedAttachment { name, source, r#type } in attachments {
        let content = Content::Path(source.0);
        attempt.attach(Attachment { name: name.0, media_type: r#type.0, content });
    }
}

impl ReportedStep {
    /// Returns a step without those within it.
    pub(super) fn step(&self, depth: usize) -> Step {
        Step {
            depth,
            name: self.name.0.clone(),
            // Steps that only have attachments lack a status.
            result: result(&self.status.0).unwrap_or(TestResult::Passed),
            seconds: seconds(self.start, self.stop),
            message: self.status_details.message.0.trim().to_owned(),
        }
    }

    pub(super) fn add_to(self, attempt: &mut Attempt, depth: usize) {
        if attempt.steps.len() >= MOST_STEPS || depth > DEEPEST {
            return;
        }
        attempt.steps.push(self.step(depth));
        attach(attempt, self.attachments.0);
        for step in self.steps.0 {
            step.add_to(attempt, depth + 1);
        }
    }
}

pub(super) fn seconds(start: Number, stop: Number) -> f64 {
    duration(stop.0.zip(start.0).map(|(stop, start)| (stop - start) / 1e3))
}

pub(super) fn result(status: &str) -> Option<TestResult> {
    match status {
        "passed" => Some(TestResult::Passed),
        "failed" => Some(TestResult::Failed),
        "skipped" => Some(TestResult::Canceled),
        "broken" | "unknown" => Some(TestResult::Error),
        _ => None,
    }
}
