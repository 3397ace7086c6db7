//! A test or container.

use std::rc::Rc;

use assay_proto::{TestResult, Timestamp};

use crate::{
    Attempt, Nature, Problem, Property, Test,
    durations::duration,
    limits::{MESSAGE, MOST_LABELS},
    names::named,
    texts::beginning,
};

/// The kind of a node, as JUnit states it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Kind {
    /// A test if it has no children.
    #[default]
    Unknown,
    Container,
    Test,
}

impl Kind {
    pub(super) fn of(text: &str) -> Self {
        match text {
            "TEST" | "CONTAINER_AND_TEST" => Self::Test,
            "CONTAINER" => Self::Container,
            _ => Self::Unknown,
        }
    }
}

/// A test or container.
#[derive(Default)]
pub(super) struct Node {
    /// Number in the order of the report.
    pub(super) number: usize,
    pub(super) title: String,
    pub(super) legacy_name: String,
    /// Name of its method, which names a test without a legacy name.
    pub(super) method: String,
    pub(super) kind: Kind,
    has_children: bool,
    /// Titles of the containers around it, outermost first.
    suites: Rc<[String]>,
    /// Name of the innermost class, which is itself or around it.
    class: Option<Rc<str>>,
    /// Whether the class is its own.
    is_class: bool,
    /// Legacy name of the container around it.
    parent: Rc<str>,
    labels: Vec<Property>,
    pub(super) start: Option<Timestamp>,
    pub(super) end: Option<Timestamp>,
    pub(super) seconds: Option<f64>,
    pub(super) status: Option<String>,
    pub(super) reason: String,
    pub(super) nature: Option<Nature>,
    /// Stack trace of its failure.
    pub(super) stack: String,
    /// Its output and attachments.
    pub(super) attempt: Attempt,
    /// Memory that was counted for it, in bytes.
    pub(super) size: usize,
}

impl Node {
    /// Returns a new node within another one.
    pub(super) fn within(parent: Option<&mut Self>, count: &mut usize) -> Self {
        *count += 1;
        let number = *count;
        let Some(parent) = parent else { return Self { number, ..Self::default() } };
        parent.has_children = true;
        let title = [parent.title.clone()];
        Self {
            number,
            suites: parent.suites.iter().chain(&title).cloned().collect(),
            class: parent.class.clone(),
            parent: parent.name().into(),
            ..Self::default()
        }
    }

    pub(super) fn set_class(&mut self, class: &str) {
        if !class.is_empty() {
            (self.class, self.is_class) = (Some(named(class).into()), true);
        }
    }

    /// Adds a label if there is room.
    pub(super) fn label(&mut self, label: Property) {
        if self.labels.len() < MOST_LABELS {
            self.labels.push(label);
        }
    }

    fn name(&self) -> &str {
        let names = [&self.legacy_name, &self.method, &self.title];
        names.into_iter().find(|name| !name.is_empty()).map_or("", String::as_str)
    }

    /// Returns about how much memory the node takes, in bytes.
    pub(super) fn memory(&self) -> usize {
        let labels = self.labels.iter().map(|label| label.value.len() + 80).sum::<usize>();
        let texts = self.stack.len() + self.reason.len() + self.attempt.output.len();
        let suites = self.suites.iter().map(|suite| suite.len() + 24).sum::<usize>();
        600 + labels + texts + suites + self.title.len() + self.legacy_name.len()
    }

    fn is_test(&self) -> bool {
        match self.kind {
            Kind::Test => true,
            Kind::Container => false,
            Kind::Unknown => !self.has_children,
        }
    }

    /// Returns the test, or the entry of a container that failed or was skipped.
    pub(super) fn finish(self) -> Option<Test> {
        let (is_test, result) = (self.is_test(), self.result());
        // A container without a result has those of its tests.
        if !is_test && (result == TestResult::Passed || self.status.is_none()) {
            return None;
        }
        let name = self.name().to_owned();
        let (class, name) = match &self.class {
            // The entry of a class is that of all of its tests.
            Some(class) if self.is_class && !is_test => (class.to_string(), String::new()),
            Some(class) => (class.to_string(), name),
            None => (self.parent.to_string(), name),
        };
        let between =
            self.start.zip(self.end).map(|(start, end)| (end.0 - start.0).as_seconds_f64());
        let seconds = duration(self.seconds.or(between));
        let (mut problems, mut reason) = (Vec::new(), String::new());
        match Nature::of(result).filter(|_| self.status.is_some()) {
            Some(nature) => problems.push(self.problem(nature)),
            None => reason = self.skipped(),
        }
        let start = self.start;
        let attempt = Attempt { start, seconds, result, reason, problems, ..self.attempt };
        let mut test =
            Test { suites: self.suites.to_vec(), class, name, start, seconds, ..Test::default() };
        self.labels.into_iter().for_each(|label| test.label(label));
        test.attempts.push(attempt);
        Some(test)
    }

    fn result(&self) -> TestResult {
        match self.status.as_deref() {
            Some("SUCCESSFUL") => TestResult::Passed,
            // An assumption was not met.
            Some("SKIPPED" | "ABORTED") => TestResult::Canceled,
            Some(_) => self.nature.unwrap_or(Nature::Failure).result(),
            None => TestResult::Aborted,
        }
    }

    fn problem(&self, nature: Nature) -> Problem {
        let stack = self.stack.trim();
        let message = stack.split("\n\tat ").next().unwrap_or_default().trim();
        let message = if message.is_empty() { self.reason.as_str() } else { message };
        let message =
            if message.is_empty() { "The test failed without a reason." } else { message };
        let text = if stack == message { String::new() } else { stack.to_owned() };
        Problem { nature, message: beginning(message, MESSAGE), text }
    }

    /// Returns the reason why it was skipped.
    fn skipped(&self) -> String {
        if self.reason.is_empty() {
            beginning(self.stack.lines().next().unwrap_or_default(), MESSAGE)
        } else {
            self.reason.clone()
        }
    }
}
