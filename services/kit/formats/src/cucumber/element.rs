//! Elements of features in Cucumber JSON: scenarios and backgrounds with their steps and hooks.

use assay_proto::TestResult;
use serde::Deserialize;

use super::{
    attempts,
    status::{complete, result},
    step::{ReportedStep, hooks},
    tag::Tag,
};
use crate::{
    Attempt, Property, Test,
    json::{List, Name, Number, Text},
    limits::{INLINE_TOTAL, MESSAGE, MOST_LABELS, MOST_STEPS},
    names::Hash,
    times::time,
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
    /// The background of the scenario, which is an element of its own in the report.
    #[serde(skip)]
    pub(super) background: Vec<ReportedStep>,
}

impl Element {
    /// Removes the hooks and steps, in their order.
    pub(super) fn take_steps(&mut self) -> Vec<ReportedStep> {
        let mut steps = hooks("Before", &mut self.before);
        steps.extend(
            std::mem::take(&mut self.steps.0).into_iter().flat_map(ReportedStep::with_hooks),
        );
        steps.extend(hooks("Around", &mut self.around));
        steps.extend(hooks("After", &mut self.after));
        steps
    }

    /// Returns whether the id and line are those of another element: a background of cucumber-rs has those of its
    /// scenario.
    pub(super) fn has_place_of(&self, other: &Self) -> bool {
        !self.id.0.is_empty()
            && self.line.0.is_some()
            && (&self.id.0, self.line.0) == (&other.id.0, other.line.0)
    }

    /// Returns the place of the scenario, or of the row of its examples, if it is known.
    pub(super) fn place(&self) -> String {
        match (self.location.0.as_str(), self.line.0) {
            ("", Some(line)) if !self.id.0.is_empty() => {
                // Rows of examples could have the id and line of their scenario, but have other steps.
                let mut steps = Hash::default();
                self.steps.0.iter().for_each(|step| steps.add(step.name().as_bytes()));
                format!("{}:{line}:{}", self.id.0, steps.value())
            }
            (location, _) => location.to_owned(),
        }
    }

    /// Returns whether cucumber-rs wrote the element. Other tools separate the parts of an id by semicolons, and name
    /// the definitions of steps.
    fn is_of_cucumber_rs(&self) -> bool {
        let lists = [&self.before.0, &self.steps.0, &self.after.0, &self.background];
        self.id.0.contains('/')
            && !self.id.0.contains(';')
            && lists.into_iter().flatten().all(ReportedStep::has_no_match)
    }

    /// Removes the hooks and steps of each attempt.
    fn take_attempts(&mut self) -> Vec<Vec<ReportedStep>> {
        let background = std::mem::take(&mut self.background);
        if self.is_of_cucumber_rs() {
            let before = hooks("Before", &mut self.before);
            let after = hooks("After", &mut self.after);
            let steps = std::mem::take(&mut self.steps.0);
            return attempts::divide(before, background, steps, after);
        }
        self.steps.0.splice(0..0, background);
        vec![self.take_steps()]
    }

    pub(super) fn into_test(mut self) -> Test {
        let attempts = self.take_attempts();
        let name = if self.name.0.trim().is_empty() { &self.id.0 } else { &self.name.0 };
        let name = name.trim().to_owned();
        let tag = |Tag(name)| Property::new("tag", name.trim_start_matches('@'));
        let labels = std::mem::take(&mut self.tags.0).into_iter().map(tag).collect();
        let mut test = Test { name, labels, ..Test::default() };
        let mut room = INLINE_TOTAL;
        for steps in attempts {
            let attempt = self.attempt(steps, &mut room);
            (test.start, test.seconds) = (attempt.start, attempt.seconds);
            test.push(attempt);
        }
        test
    }

    /// Returns the attempt with these steps, whose attachments have `room` bytes.
    fn attempt(&self, steps: Vec<ReportedStep>, room: &mut usize) -> Attempt {
        let per_second = if self.location.0.is_empty() { NANOSECONDS } else { 1.0 };
        let mut attempt = Attempt { start: time(&self.start_timestamp.0), ..Attempt::default() };
        for step in steps {
            step.add_to(&mut attempt, per_second, room);
        }
        attempt.seconds = attempt.steps.iter().map(|step| step.seconds).sum();
        let reported = (!self.status.0.is_empty()).then(|| match self.status.0.as_str() {
            "undefined" => TestResult::Error,
            status => result(status),
        });
        complete(&mut attempt, reported);
        attempt
    }
}
