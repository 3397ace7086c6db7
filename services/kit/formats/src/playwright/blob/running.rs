//! Attempts that run, by the ids of their results.

use std::collections::HashMap;

use assay_proto::{Fault, TestResult};
use base64::{Engine, prelude::BASE64_STANDARD};
use serde::Deserialize;

use super::super::outcome::{Annotation, Failure, Outcome, ReportedAttachment};
use super::PlaywrightBlob;
use crate::{
    Attempt, Format, Step,
    durations::duration,
    fault::excessive,
    held,
    json::{Flag, List, Number, Text},
    limits::{DEEPEST, MOST_ATTACHMENTS, MOST_LABELS, MOST_STEPS, OUTPUT, STEP},
    texts::keep_end,
    times::since_1970,
    values::without_colours,
};

/// Maximum number of attempts that run at the same time. Playwright has one for each worker.
const MOST: usize = 1000;

/// The attempts that run.
#[derive(Default)]
pub(super) struct Run {
    attempts: HashMap<String, Running>,
    /// Memory of the attempts, in bytes.
    size: usize,
}

#[derive(Default)]
struct Running {
    test: String,
    start: Number,
    output: String,
    steps: Vec<Step>,
    /// Indexes of steps by their ids.
    indexes: HashMap<String, usize>,
    attachments: Vec<ReportedAttachment>,
    /// Memory of the attempt, in bytes.
    size: usize,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Begin {
    test_id: Text<256>,
    result: Begun,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Begun {
    id: Text<256>,
    /// Milliseconds.
    start_time: Number,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct StepEvent {
    result_id: Text<256>,
    step: ReportedStep,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ReportedStep {
    id: Text<256>,
    parent_step_id: Text<256>,
    title: Text<STEP>,
    duration: Number,
    error: Option<Failure>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Printed {
    result_id: Text<256>,
    data: Text<OUTPUT>,
    is_base64: Flag,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Attached {
    result_id: Text<256>,
    attachments: List<ReportedAttachment, MOST_ATTACHMENTS>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct End {
    test: EndedTest,
    result: Outcome,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct EndedTest {
    test_id: Text<256>,
    expected_status: Text<32>,
    annotations: List<Annotation, MOST_LABELS>,
}

impl Run {
    pub(super) fn begin(&mut self, Begin { test_id, result }: Begin) {
        if self.attempts.len() < MOST {
            let (test, start) = (test_id.0, result.start_time);
            self.attempts.insert(result.id.0, Running { test, start, ..Running::default() });
        }
    }

    /// Checks the memory of the attempts.
    pub(super) fn check(&self) -> Result<(), Fault> {
        if self.size <= held::LARGEST {
            return Ok(());
        }
        let problem = format!("more than {} MiB of results do not end", held::LARGEST >> 20);
        Err(excessive(PlaywrightBlob.name(), "split the run into shards", problem))
    }

    /// Returns an attempt, to which this number of bytes is added.
    fn growing(&mut self, id: &str, size: usize) -> Option<&mut Running> {
        let running = self.attempts.get_mut(id)?;
        running.size += size;
        self.size += size;
        Some(running)
    }

    pub(super) fn begin_step(&mut self, StepEvent { result_id, step }: StepEvent) {
        let size = step.id.0.len() + step.title.0.len() + 150;
        let Some(running) = self.growing(&result_id.0, size) else { return };
        let parent = running.indexes.get(&step.parent_step_id.0);
        let depth = parent.map_or(0, |parent| (running.steps[*parent].depth + 1).min(DEEPEST));
        if running.steps.len() < MOST_STEPS {
            running.indexes.insert(step.id.0, running.steps.len());
            // A step that does not end was interrupted.
            let result = TestResult::Aborted;
            running.steps.push(Step { depth, name: step.title.0, result, ..Step::default() });
        }
    }

    pub(super) fn end_step(&mut self, StepEvent { result_id, step }: StepEvent) {
        let error = step.error.map(|error| without_colours(&error.message.0));
        let size = error.as_ref().map_or(0, String::len);
        let Some(running) = self.growing(&result_id.0, size) else { return };
        let index = running.indexes.get(&step.id.0).copied();
        let Some(begun) = index.and_then(|index| running.steps.get_mut(index)) else { return };
        begun.seconds = duration(step.duration.0.map(|milliseconds| milliseconds / 1e3));
        begun.result = TestResult::Passed;
        if let Some(message) = error {
            (begun.result, begun.message) = (TestResult::Failed, message);
        }
    }

    pub(super) fn print(&mut self, Printed { result_id, data, is_base64 }: &Printed) {
        let Some(running) = self.attempts.get_mut(&result_id.0) else { return };
        let decoded = is_base64.0.then(|| BASE64_STANDARD.decode(&data.0).ok()).flatten();
        let decoded = decoded.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        keep_end(&mut running.output, decoded.as_ref().unwrap_or(&data.0), OUTPUT);
    }

    pub(super) fn attach(&mut self, Attached { result_id, attachments }: Attached) {
        let size = attachments.0.iter().map(ReportedAttachment::size).sum();
        let Some(running) = self.growing(&result_id.0, size) else { return };
        running.attachments.extend(attachments.0);
        running.attachments.truncate(MOST_ATTACHMENTS);
    }

    /// Returns the id of a test with the attempt that ends and its annotations.
    pub(super) fn end(
        &mut self,
        End { test, mut result }: End,
    ) -> (String, Attempt, Vec<Annotation>) {
        let mut running = self.attempts.remove(&result.id.0).unwrap_or_default();
        self.size -= running.size;
        running.attachments.append(&mut result.attachments.0);
        running.attachments.truncate(MOST_ATTACHMENTS);
        for file in &mut running.attachments {
            // Names of files in the archive have no folders.
            let name = file.path.0.rsplit('/').next().unwrap_or_default().to_owned();
            file.path.0 = name;
        }
        result.attachments.0 = std::mem::take(&mut running.attachments);
        let mut annotations = test.annotations.0;
        annotations.append(&mut result.annotations.0);
        let start = since_1970(running.start.0);
        let attempt = Attempt {
            start,
            steps: running.steps,
            output: running.output,
            ..result.into_attempt(&test.expected_status.0)
        };
        (test.test_id.0, attempt, annotations)
    }

    /// Returns the attempts that did not end, with the ids of their tests.
    pub(super) fn finish(self) -> Vec<(String, Attempt)> {
        let mut running: Vec<Running> = self.attempts.into_values().collect();
        running.sort_unstable_by(|one, other| one.test.cmp(&other.test));
        let aborted = |running: Running| {
            let attempt = Attempt {
                start: since_1970(running.start.0),
                result: TestResult::Aborted,
                steps: running.steps,
                output: running.output,
                ..Attempt::default()
            };
            (running.test, attempt)
        };
        running.into_iter().map(aborted).collect()
    }
}
