//! Elements of features in Cucumber JSON: scenarios and backgrounds with their steps and hooks.

use assay_proto::TestResult;
use serde::Deserialize;

use super::{
    status::{add, complete, explanation, result},
    tag::Tag,
};
use crate::{
    Attachment, Attempt, Content, Nature, Property, Step, Test,
    durations::duration,
    json::{List, Name, Number, Text},
    limits::{INLINE, INLINE_TOTAL, MESSAGE, MOST_ATTACHMENTS, MOST_LABELS, MOST_STEPS, STEP},
    names::Hash,
    texts::beginning,
    times::time,
    values::inline,
};

/// Maximum number of steps of a scenario that its result follows from. Fewer are kept.
const MOST_READ: usize = 10_000;

/// Unit of durations, of which a second has this many.
const NANOSECONDS: f64 = 1e9;

/// A scenario or a background.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Element {
    id: Name,
    line: Number,
    pub(super) r#type: Text<32>,
    name: Name,
    tags: List<Tag, MOST_LABELS>,
    before: List<ReportedStep, MOST_STEPS>,
    pub(super) steps: List<ReportedStep, MOST_READ>,
    /// Hooks around the scenario, of which Cucumber for Ruby writes those that failed.
    around: List<ReportedStep, MOST_STEPS>,
    after: List<ReportedStep, MOST_STEPS>,
    start_timestamp: Text<64>,
    /// Result and place in reports of Behave.
    status: Text<32>,
    location: Text<MESSAGE>,
}

/// A step or a hook.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct ReportedStep {
    keyword: Text<64>,
    name: Text<STEP>,
    result: StepResult,
    embeddings: List<Embedding, MOST_ATTACHMENTS>,
    /// Hooks of the step, which may fail although the step passed.
    before: List<ReportedStep, MOST_STEPS>,
    after: List<ReportedStep, MOST_STEPS>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct StepResult {
    status: Text<32>,
    /// Nanoseconds, or seconds in reports of Behave.
    duration: Number,
    error_message: Text<MESSAGE>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Embedding {
    name: Text<MESSAGE>,
    #[serde(alias = "media")]
    mime_type: Text<256>,
    /// Base64.
    data: Text<{ INLINE / 3 * 4 + 8 }>,
}

impl Element {
    /// Removes the hooks and steps, in their order. Hooks of steps that did not fail only matter for their
    /// attachments.
    pub(super) fn take_steps(&mut self) -> Vec<ReportedStep> {
        let has_failed = |hook: &ReportedStep| Nature::of(result(&hook.result.status.0)).is_some();
        let mut steps = hooks("Before", &mut self.before);
        for mut step in std::mem::take(&mut self.steps.0) {
            let before = hooks("BeforeStep", &mut step.before);
            let after = hooks("AfterStep", &mut step.after);
            let (before, sound): (Vec<_>, Vec<_>) = before.into_iter().partition(has_failed);
            let (after, others): (Vec<_>, Vec<_>) = after.into_iter().partition(has_failed);
            let attached = sound.into_iter().chain(others).flat_map(|hook| hook.embeddings.0);
            step.embeddings.0.extend(attached);
            steps.extend(before);
            steps.push(step);
            steps.extend(after);
        }
        steps.extend(hooks("Around", &mut self.around));
        steps.extend(hooks("After", &mut self.after));
        steps
    }

    /// Returns the id and line of the scenario, if they are known. A background of cucumber-rs has those of its scenario.
    pub(super) fn id_and_line(&self) -> Option<String> {
        let line = self.line.0.filter(|_| !self.id.0.is_empty())?;
        Some(format!("{}:{line}", self.id.0))
    }

    /// Returns the place of the scenario, or of the row of its examples, if it is known.
    pub(super) fn place(&self) -> String {
        match (self.location.0.as_str(), self.line.0) {
            ("", Some(line)) if !self.id.0.is_empty() => {
                // Rows of examples could have the id and line of their scenario, but have other steps.
                let mut steps = Hash::default();
                self.steps.0.iter().for_each(|step| steps.add(step.name.0.as_bytes()));
                format!("{}:{line}:{}", self.id.0, steps.value())
            }
            (location, _) => location.to_owned(),
        }
    }

    pub(super) fn into_test(mut self) -> Test {
        let steps = self.take_steps();
        let name = if self.name.0.trim().is_empty() { self.id.0 } else { self.name.0 };
        let tag = |Tag(name)| Property::new("tag", name.trim_start_matches('@'));
        let labels = self.tags.0.into_iter().map(tag);
        let labels = labels.collect();
        let per_second = if self.location.0.is_empty() { NANOSECONDS } else { 1.0 };
        let mut attempt = Attempt { start: time(&self.start_timestamp.0), ..Attempt::default() };
        let mut room = INLINE_TOTAL;
        for step in steps {
            step.add_to(&mut attempt, per_second, &mut room);
        }
        attempt.seconds = attempt.steps.iter().map(|step| step.seconds).sum();
        let reported = (!self.status.0.is_empty()).then(|| match self.status.0.as_str() {
            "undefined" => TestResult::Error,
            status => result(status),
        });
        complete(&mut attempt, reported);
        Test {
            name: name.trim().to_owned(),
            start: attempt.start,
            seconds: attempt.seconds,
            labels,
            attempts: vec![attempt],
            ..Test::default()
        }
    }
}

/// Adds steps in front of those of a test, whose result follows from all of them.
pub(super) fn precede(test: &mut Test, steps: Vec<ReportedStep>) {
    let Some(attempt) = test.attempts.last_mut() else { return };
    let inline = attempt.attachments.iter().map(|attachment| match &attachment.content {
        Content::Inline(bytes) => bytes.len(),
        _ => 0,
    });
    let mut room = INLINE_TOTAL.saturating_sub(inline.sum());
    let own = std::mem::take(&mut attempt.steps);
    for step in steps {
        step.add_to(attempt, NANOSECONDS, &mut room);
    }
    for step in own {
        add(attempt, step);
    }
    attempt.seconds = attempt.steps.iter().map(|step| step.seconds).sum();
    attempt.reason.clear();
    complete(attempt, None);
    test.seconds = attempt.seconds;
}

/// Removes hooks. They get this name, as most reports have none.
fn hooks(kind: &str, hooks: &mut List<ReportedStep, MOST_STEPS>) -> Vec<ReportedStep> {
    let mut hooks = std::mem::take(&mut hooks.0);
    for hook in &mut hooks {
        if hook.name.0.trim().is_empty() && hook.keyword.0.trim().is_empty() {
            hook.name = Text(kind.to_owned());
        }
    }
    hooks
}

impl ReportedStep {
    /// Returns whether the step has a result.
    pub(super) fn has_result(&self) -> bool {
        !self.result.status.0.is_empty()
    }

    fn add_to(self, attempt: &mut Attempt, per_second: f64, room: &mut usize) {
        let StepResult { status, duration: nanoseconds, error_message } = self.result;
        let name = format!("{} {}", self.keyword.0.trim(), self.name.0.trim());
        let name = beginning(name.trim(), STEP);
        let message = match error_message.0.trim() {
            "" => explanation(&status.0, &name),
            message => message.to_owned(),
        };
        let seconds = duration(nanoseconds.0.map(|nanoseconds| nanoseconds / per_second));
        let result = result(&status.0);
        add(attempt, Step { depth: 0, name, result, seconds, message });
        for Embedding { name, mime_type, data } in self.embeddings.0 {
            let content = inline(&data.0, room);
            attempt.attach(Attachment { name: name.0, media_type: mime_type.0, content });
        }
    }
}
