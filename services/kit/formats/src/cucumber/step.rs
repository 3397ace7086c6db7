//! Steps and hooks in Cucumber JSON.

use serde::{Deserialize, de::IgnoredAny};

use super::status::{add, explanation, result};
use crate::{
    Attachment, Attempt, Nature, Step,
    durations::duration,
    json::{List, Number, Text},
    limits::{INLINE, MESSAGE, MOST_ATTACHMENTS, MOST_STEPS, STEP},
    texts::beginning,
    values::inline,
};

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
    line: Number,
    /// Place of the definition.
    r#match: Option<IgnoredAny>,
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

/// Removes hooks. They get this name, as most reports have none.
pub(super) fn hooks(kind: &str, hooks: &mut List<ReportedStep, MOST_STEPS>) -> Vec<ReportedStep> {
    let mut hooks = std::mem::take(&mut hooks.0);
    for hook in &mut hooks {
        if hook.name.0.trim().is_empty() && hook.keyword.0.trim().is_empty() {
            hook.name = Text(kind.to_owned());
        }
    }
    hooks
}

impl ReportedStep {
    pub(super) fn name(&self) -> &str {
        &self.name.0
    }

    /// Returns whether the step has a result.
    pub(super) fn has_result(&self) -> bool {
        !self.result.status.0.is_empty()
    }

    pub(super) fn has_failed(&self) -> bool {
        Nature::of(result(&self.result.status.0)).is_some()
    }

    /// Returns whether the place of the definition is unknown.
    pub(super) fn has_no_match(&self) -> bool {
        self.r#match.is_none()
    }

    /// Returns whether this is another run of a step.
    pub(super) fn repeats(&self, step: &Self) -> bool {
        self.line.0.is_some() && self.line.0 == step.line.0
    }

    /// Returns the step with its hooks, in their order. Hooks that did not fail only matter for their attachments.
    pub(super) fn with_hooks(mut self) -> Vec<Self> {
        let before = hooks("BeforeStep", &mut self.before);
        let after = hooks("AfterStep", &mut self.after);
        let (mut steps, sound): (Vec<_>, Vec<_>) = before.into_iter().partition(Self::has_failed);
        let (after, others): (Vec<_>, Vec<_>) = after.into_iter().partition(Self::has_failed);
        let attached = sound.into_iter().chain(others).flat_map(|hook| hook.embeddings.0);
        self.embeddings.0.extend(attached);
        steps.push(self);
        steps.extend(after);
        steps
    }

    /// Adds the step to an attempt. A second has `per_second` units of its duration, and attachments have `room` bytes.
    pub(super) fn add_to(self, attempt: &mut Attempt, per_second: f64, room: &mut usize) {
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
