//! A result in a file: an attempt of a test.

use assay_proto::TestResult;
use serde::Deserialize;

use super::{
    fixtures::Fixtures,
    step::{Details, ReportedAttachment, ReportedStep, attach, result, seconds},
};
use crate::{
    Attempt, Link, Nature, Problem, Property, Test,
    json::{Flag, List, Name, Number, Text},
    limits::{MESSAGE, MOST_ATTACHMENTS, MOST_LABELS, MOST_STEPS},
    names::named,
    times::since_1970,
};

/// Names of the labels with the suites of a test, outermost first.
const SUITES: [&str; 3] = ["parentSuite", "suite", "subSuite"];

/// Names of labels that describe the run and not the test, or are kept otherwise.
const TECHNICAL: [&str; 11] = [
    "_fallbackTestCaseId",
    "framework",
    "host",
    "language",
    "package",
    "parentSuite",
    "subSuite",
    "suite",
    "testClass",
    "testMethod",
    "thread",
];

/// The ids and what orders the attempts of a test.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Brief {
    uuid: Text<256>,
    history_id: Text<256>,
    start: Number,
    status: Text<32>,
    parameters: List<Parameter, MOST_LABELS>,
}

impl Brief {
    /// Returns the start, and whether the attempt failed. Of attempts within a millisecond, whose order
    /// is not known, one that failed is the last: what passed before it does not make the test green.
    pub(super) fn order(&self) -> (i64, bool) {
        #[expect(clippy::cast_possible_truncation, reason = "only the order counts")]
        let start = self.start.0.map_or(0, |start| start as i64);
        (start, result(&self.status.0).and_then(Nature::of).is_some())
    }

    /// Returns the id that all attempts of an instance have. Some tools have one id for all instances.
    pub(super) fn history(self, index: usize) -> String {
        let instance: Vec<String> = Parameter::distinctive(&self.parameters)
            .map(|parameter| format!("{}={}", parameter.name.0, parameter.value.0))
            .collect();
        let instance = instance.join(", ");
        match (self.history_id.0, self.uuid.0) {
            (history, uuid) if history.is_empty() && uuid.is_empty() => format!("file {index}"),
            (history, uuid) if history.is_empty() => format!("result {uuid}"),
            (history, _) => format!("{history} {instance}"),
        }
    }
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Outcome {
    uuid: Text<256>,
    name: Name,
    full_name: Name,
    labels: List<Label, MOST_LABELS>,
    links: List<ReportedLink, MOST_LABELS>,
    parameters: List<Parameter, MOST_LABELS>,
    status: Text<32>,
    status_details: Details,
    start: Number,
    stop: Number,
    steps: List<ReportedStep, MOST_STEPS>,
    attachments: List<ReportedAttachment, MOST_ATTACHMENTS>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Label {
    name: Text<256>,
    value: Text<MESSAGE>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ReportedLink {
    r#type: Text<256>,
    name: Text<MESSAGE>,
    url: Text<MESSAGE>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Parameter {
    name: Text<256>,
    value: Text<MESSAGE>,
    /// Whether the parameter is the same test with any value.
    excluded: Flag,
    /// `masked` and `hidden` values are secrets.
    mode: Text<16>,
}

impl Outcome {
    /// Adds the attempt to a test, and completes it.
    pub(super) fn add_to(self, test: &mut Test, fixtures: &mut Fixtures) {
        self.identify(test);
        let is_kept = |label: &&Label| !TECHNICAL.contains(&label.name.0.as_str());
        let labels = self.labels.0.iter().filter(is_kept);
        test.labels = labels.map(|label| Property::new(&label.name.0, &label.value.0)).collect();
        let link = |link: &ReportedLink| {
            let kind = if link.r#type.0.is_empty() { "link" } else { &link.r#type.0 };
            let target = if link.url.0.is_empty() { &link.name.0 } else { &link.url.0 };
            Link { kind: kind.to_owned(), target: target.clone() }
        };
        test.links = self.links.0.iter().map(link).collect();
        test.parameters =
            Parameter::distinctive(&self.parameters).map(Parameter::property).collect();
        let attempt = self.into_attempt(fixtures);
        (test.start, test.seconds) = (attempt.start, attempt.seconds);
        test.push(attempt);
    }

    /// Class and name are those of other reports of the tool, where they are known.
    fn identify(&self, test: &mut Test) {
        let label = |name: &str| {
            let found = self.labels.0.iter().find(|label| label.name.0 == name);
            found.map_or("", |label| label.value.0.as_str())
        };
        identify(test, &self.full_name.0, &self.name.0, label("framework"));
        test.suites =
            SUITES.map(label).into_iter().filter(|suite| !suite.is_empty()).map(named).collect();
    }

    fn into_attempt(self, fixtures: &mut Fixtures) -> Attempt {
        let result = result(&self.status.0).unwrap_or(TestResult::Error);
        let message = self.status_details.message.0.trim().to_owned();
        let (mut problems, mut reason) = (Vec::new(), String::new());
        match Nature::of(result) {
            Some(nature) => {
                let text = self.status_details.trace.0;
                problems.push(Problem { nature, message, text });
            }
            None if result == TestResult::Canceled => reason = message,
            None => {}
        }
        let mut attempt = Attempt {
            start: since_1970(self.start.0),
            seconds: seconds(self.start, self.stop),
            result,
            reason,
            problems,
            ..Attempt::default()
        };
        attach(&mut attempt, self.attachments.0);
        let (before, after) = fixtures.of(&self.uuid.0);
        attempt.steps.extend(before.cloned());
        for step in self.steps.0 {
            step.add_to(&mut attempt, 0);
        }
        attempt.steps.extend(after.cloned());
        attempt.steps.truncate(MOST_STEPS);
        if Nature::of(attempt.result).is_some() {
            fixtures.explain(&self.uuid.0);
        }
        attempt
    }
}

/// Returns the identifier of the test case that results with this full name, name and framework are of.
pub fn identifier(full: &str, name: &str, framework: &str) -> String {
    let mut test = Test::default();
    identify(&mut test, &named(full), &named(name), framework);
    test.identifier()
}

/// Sets the class and the name of a test, or else its id.
fn identify(test: &mut Test, full: &str, name: &str, framework: &str) {
    let (full, name) = (full.trim(), name.trim());
    let split = match framework {
        "playwright" => full.split_once(" › "),
        _ => full
            .rsplit_once('#')
            .or_else(|| full.rsplit_once('.').filter(|_| !full.contains(char::is_whitespace))),
    };
    let (class, own) = split.unwrap_or(("", full));
    test.class = named(class);
    // The name of a test of pytest has its parameters, unless it was replaced by a title.
    let has_parameters =
        name.strip_prefix(own).is_some_and(|rest| !own.is_empty() && rest.starts_with('['));
    let name = if own.is_empty() || has_parameters { name } else { own };
    name.clone_into(&mut test.name);
    if test.class.is_empty() {
        // Suites are names for readers here, and no part of the identity.
        test.id.clone_from(&test.name);
    }
}

impl Parameter {
    /// Returns the parameters with which the test is another one.
    fn distinctive(all: &List<Self, MOST_LABELS>) -> impl Iterator<Item = &Self> {
        all.0.iter().filter(|parameter| !parameter.excluded.0)
    }

    fn property(&self) -> Property {
        let is_secret = matches!(self.mode.0.as_str(), "masked" | "hidden");
        Property::new(&self.name.0, if is_secret { "***" } else { &self.value.0 })
    }
}
