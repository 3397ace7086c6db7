//! Cucumber JSON: features with elements, which are scenarios and backgrounds. Behave writes times,
//! tags and places in ways of its own.

use std::io::BufRead;

use assay_proto::{Fault, TestResult};
use serde::{
    Deserialize,
    de::{DeserializeSeed, Error, IgnoredAny, MapAccess, SeqAccess},
};

use super::{
    status::{add, complete, explanation, result},
    tag::Tag,
};
use crate::{
    Attachment, Attempt, Content, Format, Head, Nature, Problem, Property, Retry, Sink, Step, Test,
    durations::duration,
    held::Held,
    json::{self, Array, Elements, List, Members, Name, Number, Object, Output, Text},
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

/// The format of Cucumber JSON.
pub struct CucumberJson;

impl Format for CucumberJson {
    fn name(&self) -> &'static str {
        "Cucumber JSON"
    }

    fn recognizes(&self, head: &Head) -> bool {
        head.array().is_some_and(|json| {
            json.has(2, "elements")
                || (json.has(2, "keyword") && (json.has(2, "uri") || json.has(2, "location")))
        })
    }

    fn read(&self, file: &mut dyn BufRead, sink: Sink<'_>) -> Result<(), Fault> {
        json::read(self.name(), file, sink, |json, output| {
            Array(&mut Features(output)).deserialize(json)
        })
    }
}

struct Features<'o, 's>(&'o mut Output<'s>);

impl Elements for Features<'_, '_> {
    fn element<'de, A: SeqAccess<'de>>(&mut self, sequence: &mut A) -> Result<bool, A::Error> {
        let mut feature = Feature {
            name: String::new(),
            file: String::new(),
            background: None,
            last: None,
            status: None,
            has_failures: false,
            location: String::new(),
            held: Held::default(),
            output: self.0,
        };
        let found = sequence.next_element_seed(Object(&mut feature))?.is_some();
        if found {
            feature.end_background()?;
            feature.release()?;
        }
        Ok(found)
    }
}

/// A feature. Its name often comes behind its scenarios, which wait for it.
struct Feature<'o, 's> {
    name: String,
    /// Name of the file without its end, in reports of Behave.
    file: String,
    /// The background that precedes the next scenario.
    background: Option<Element>,
    /// Id and line of the last scenario, if they are known.
    last: Option<String>,
    /// Result that Behave reports of the feature.
    status: Option<TestResult>,
    has_failures: bool,
    /// Place of the last scenario.
    location: String,
    held: Held<()>,
    output: &'o mut Output<'s>,
}

impl Members for Feature<'_, '_> {
    fn member<'de, A: MapAccess<'de>>(&mut self, name: &str, map: &mut A) -> Result<(), A::Error> {
        match name {
            "name" => {
                self.name = map.next_value::<Name>()?.0;
            }
            "location" => {
                let Text(location) = map.next_value::<Text<MESSAGE>>()?;
                let file = location.rsplit('/').next().unwrap_or_default();
                let file = file.split(".feature").next().unwrap_or_default();
                file.clone_into(&mut self.file);
            }
            "elements" => map.next_value_seed(Array(self))?,
            "status" => {
                let Text(status) = map.next_value::<Text<32>>()?;
                self.status = (!status.is_empty()).then(|| result(&status));
            }
            _ => _ = map.next_value::<IgnoredAny>()?,
        }
        Ok(())
    }
}

impl Elements for Feature<'_, '_> {
    fn element<'de, A: SeqAccess<'de>>(&mut self, sequence: &mut A) -> Result<bool, A::Error> {
        let Some(mut element) = sequence.next_element::<Element>()? else { return Ok(false) };
        let id_and_line = element.id_and_line();
        if element.r#type.0 == "background" {
            // Cucumber for Ruby writes the hooks of the scenario here.
            let mut steps = element.take_steps();
            steps.retain(|step| !step.result.status.0.is_empty());
            if id_and_line.is_some() && id_and_line == self.last {
                self.add_to_last(steps)?;
            } else {
                self.end_background()?;
                element.steps = List(steps);
                self.background = Some(element);
            }
        } else {
            let background = self.background.take().map(|background| background.steps.0);
            element.steps.0.splice(0..0, background.unwrap_or_default());
            self.last = id_and_line;
            // Behave and Cucumber for Ruby write each attempt of a scenario.
            let place = element.place();
            let is_again = !place.is_empty() && place == self.location;
            self.location = place;
            let mut test = element.into_test();
            test.retry = if is_again { Retry::AfterFailure } else { Retry::Never };
            self.hold(test)?;
        }
        Ok(true)
    }
}

impl Feature<'_, '_> {
    /// Lets a test wait for the name of the feature.
    fn hold<E: Error>(&mut self, test: Test) -> Result<(), E> {
        self.has_failures |= Nature::of(test.result()).is_some();
        let held = self.held.push((), test, CucumberJson.name());
        held.map_err(|fault| self.output.stop(fault))
    }

    /// Adds the steps of a background to the scenario in front of it, whose id and line it has. cucumber-rs writes
    /// hooks and steps of a scenario before those of its background, if it has hooks.
    fn add_to_last<E: Error>(&mut self, background: Vec<ReportedStep>) -> Result<(), E> {
        let Some(mut test) = self.held.pop() else { return Ok(()) };
        precede(&mut test, background);
        self.hold(test)
    }

    /// Makes a test of a background without a scenario: cucumber-rs leaves out the scenario if the background fails.
    fn end_background<E: Error>(&mut self) -> Result<(), E> {
        match self.background.take().filter(|background| !background.steps.0.is_empty()) {
            Some(background) => self.hold(background.into_test()),
            None => Ok(()),
        }
    }

    fn release<E: serde::de::Error>(&mut self) -> Result<(), E> {
        let Self { name, file, held, output, .. } = self;
        let class = match (file.as_str(), name.as_str()) {
            ("", class) | (class, "") => class.to_owned(),
            // As in the JUnit report of Behave.
            (file, name) => format!("{file}.{name}"),
        };
        let hook = self.status.filter(|status| Nature::of(*status).is_some() && !self.has_failures);
        output.with(|sink| {
            held.release(|(), test| test.class.clone_from(&class), sink)?;
            // A hook of the feature failed, of which Behave reports nothing else.
            let Some(nature) = hook.and_then(Nature::of) else { return Ok(()) };
            let message = "The feature failed outside of its scenarios.".to_owned();
            let problem = Problem { nature, message, ..Problem::default() };
            sink.add_own(Test { name: class.clone(), ..Test::default() }, problem)
        })
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Element {
    id: Name,
    line: Number,
    r#type: Text<32>,
    name: Name,
    tags: List<Tag, MOST_LABELS>,
    before: List<ReportedStep, MOST_STEPS>,
    steps: List<ReportedStep, MOST_READ>,
    /// Hooks around the scenario, of which Cucumber for Ruby writes those that failed.
    around: List<ReportedStep, MOST_STEPS>,
    after: List<ReportedStep, MOST_STEPS>,
    start_timestamp: Text<64>,
    /// Result and place in reports of Behave.
    status: Text<32>,
    location: Text<MESSAGE>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ReportedStep {
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
    fn take_steps(&mut self) -> Vec<ReportedStep> {
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
    fn id_and_line(&self) -> Option<String> {
        let line = self.line.0.filter(|_| !self.id.0.is_empty())?;
        Some(format!("{}:{line}", self.id.0))
    }

    /// Returns the place of the scenario, or of the row of its examples, if it is known.
    fn place(&self) -> String {
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

    fn into_test(mut self) -> Test {
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
fn precede(test: &mut Test, steps: Vec<ReportedStep>) {
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
