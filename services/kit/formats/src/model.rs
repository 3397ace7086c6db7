//! The contents of reports, which all formats have in common.

use assay_proto::{TestResult, Timestamp, worst};

use crate::{limits, names::shortened, texts::beginning};

/// Names of properties and annotations that refer to records of other systems.
const LINKS: [&str; 6] = ["issue", "link", "requirement", "requirements", "test_key", "tms"];

/// Meaning of a further result of an instance in the same report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Retry {
    /// It is another instance.
    #[default]
    Never,
    /// It is a further attempt if the last one failed.
    AfterFailure,
    /// It is a further attempt. One before it that seems to have passed has failed without a record.
    Always,
}

/// A test of a report, with its attempts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Test {
    /// Names of the enclosing suites, outermost first.
    pub suites: Vec<String>,
    /// File that contains the test, if the tool reports it.
    pub file: String,
    /// Class, file or feature of the test. Together with the name it identifies the test case.
    pub class: String,
    pub name: String,
    /// Identifier of the test case, if it is not class and name.
    pub id: String,
    /// Values that distinguish this instance of the test case from others of the same run, such as
    /// the browser.
    pub parameters: Vec<Property>,
    /// Start time of the test, or of its suite.
    pub start: Option<Timestamp>,
    /// Duration in seconds, as the tool reports it.
    pub seconds: f64,
    /// Attempts in their order, at least one. The last one determines the result.
    pub attempts: Vec<Attempt>,
    /// Properties and labels. Tags are labels with the name `tag`.
    pub labels: Vec<Property>,
    /// Issues and requirements that the test refers to.
    pub links: Vec<Link>,
    /// Comment on the result, such as the reason why it is a known failure.
    pub comment: String,
    /// Whether the test is a further attempt if the report has a result of its instance before.
    pub retry: Retry,
    /// Number of the run of the tool that the test is of, in a report that was merged from several. A test
    /// of another run is not an attempt.
    pub run: usize,
}

/// A named value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Property {
    pub name: String,
    pub value: String,
}

/// A reference to a record of another system.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Link {
    /// Kind of the record, such as `issue` or `requirement`.
    pub kind: String,
    /// URL or id of the record.
    pub target: String,
}

/// An attempt at a test. Tools retry failed tests.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Attempt {
    pub start: Option<Timestamp>,
    /// Duration in seconds.
    pub seconds: f64,
    pub result: TestResult,
    /// Reason why the test was skipped, or what is known of a failed attempt without problems.
    pub reason: String,
    /// Problems in the order of the file.
    pub problems: Vec<Problem>,
    /// Steps in their order, if the tool reports them.
    pub steps: Vec<Step>,
    /// End of the output.
    pub output: String,
    pub attachments: Vec<Attachment>,
}

/// A failure, error or abortion of an attempt.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Problem {
    pub nature: Nature,
    pub message: String,
    /// Stack trace or other details.
    pub text: String,
}

/// Nature of a problem.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Nature {
    /// The test failed.
    #[default]
    Failure,
    /// Something else prevented the test.
    Error,
    /// The test did not finish.
    Abortion,
}

/// A step of an attempt.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Step {
    /// Number of enclosing steps.
    pub depth: usize,
    pub name: String,
    pub result: TestResult,
    pub seconds: f64,
    /// Message of a failed or skipped step.
    pub message: String,
}

/// A file that belongs to an attempt.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attachment {
    pub name: String,
    /// Media type; empty if the tool does not report it.
    pub media_type: String,
    pub content: Content,
}

/// Contents of an attachment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// Path on the machine that ran the test, or the name of a file beside the report.
    Path(String),
    /// The contents, in the report itself.
    Inline(Vec<u8>),
    /// Name of an artifact that the execution has already.
    Artifact(String),
    /// The report contains the attachment, but it is too large to be kept.
    Dropped,
}

impl Default for Content {
    fn default() -> Self {
        Self::Path(String::new())
    }
}

impl Nature {
    /// Returns the result of a test with such a problem.
    pub fn result(self) -> TestResult {
        match self {
            Self::Failure => TestResult::Failed,
            Self::Error => TestResult::Error,
            Self::Abortion => TestResult::Aborted,
        }
    }

    /// Returns the nature of the problem of a test with this status, in the words of many tools.
    pub(crate) fn of_status(status: &str) -> Option<Self> {
        Some(match status.to_ascii_lowercase().as_str() {
            "fail" | "failed" | "failure" => Self::Failure,
            "error" | "errored" | "broken" | "timeout" | "timedout" => Self::Error,
            "abort" | "aborted" | "interrupted" | "crashed" => Self::Abortion,
            _ => return None,
        })
    }

    /// Returns the nature of a problem that causes this result.
    pub fn of(result: TestResult) -> Option<Self> {
        match result {
            TestResult::Failed => Some(Self::Failure),
            TestResult::Error => Some(Self::Error),
            TestResult::Aborted => Some(Self::Abortion),
            _ => None,
        }
    }
}

impl Link {
    /// Returns the link that a property or annotation is, by its name.
    pub(crate) fn of(name: &str, value: &str) -> Option<Self> {
        let is_link = LINKS.contains(&name.to_ascii_lowercase().as_str()) && !value.is_empty();
        is_link.then(|| Self { kind: name.to_owned(), target: value.to_owned() })
    }
}

impl Attachment {
    /// Returns the attachment with this path on the machine that ran the test.
    pub(crate) fn at(path: &str) -> Self {
        let name = path.rsplit(['/', '\\']).next().unwrap_or(path).to_owned();
        let content = Content::Path(beginning(path, limits::MESSAGE));
        Self { name, media_type: String::new(), content }
    }
}

impl Property {
    /// Returns a property with texts of bounded size.
    pub(crate) fn new(name: &str, value: &str) -> Self {
        let bounded = |text| beginning(text, limits::MESSAGE);
        Self { name: bounded(name), value: bounded(value) }
    }
}

impl Attempt {
    /// Returns an attempt with the worst result of its problems. Without problems it passed.
    pub(crate) fn with(problems: Vec<Problem>) -> Self {
        let worst = problems.iter().map(|problem| problem.nature.result()).reduce(worst);
        Self { result: worst.unwrap_or(TestResult::Passed), problems, ..Self::default() }
    }

    /// Returns an attempt whose problem, if the result has one, is described later.
    pub(crate) fn new(start: Option<Timestamp>, seconds: f64, result: TestResult) -> Self {
        let problem = |nature| Problem { nature, ..Problem::default() };
        let problems = Nature::of(result).map(problem).into_iter().collect();
        Self { start, seconds, result, problems, ..Self::default() }
    }

    /// Adds an attachment if there is room.
    pub(crate) fn attach(&mut self, attachment: Attachment) {
        if self.attachments.len() < limits::MOST_ATTACHMENTS {
            self.attachments.push(attachment);
        }
    }

    /// Lets an attempt fail that seems to have passed, because another one followed.
    pub fn fail_unreported(&mut self) {
        if self.result == TestResult::Passed {
            let (start, seconds) = (self.start, self.seconds);
            *self = Self { start, seconds, ..Self::unreported() };
        }
    }

    /// Returns a failed attempt of which only the number is reported.
    pub(crate) fn unreported() -> Self {
        let reason = "The report has no details of this attempt.".to_owned();
        Self { result: TestResult::Failed, reason, ..Self::default() }
    }
}

impl Test {
    /// Returns the result of the last attempt. A skipped test is `Canceled`.
    pub fn result(&self) -> TestResult {
        self.attempts.last().map_or(TestResult::NotExecuted, |attempt| attempt.result)
    }

    /// Returns whether the test passed after attempts that did not.
    pub fn is_flaky(&self) -> bool {
        let failed = |attempt: &Attempt| attempt.result != TestResult::Passed;
        self.result() == TestResult::Passed && self.attempts.iter().any(failed)
    }

    /// Adds a label, and the link that it is, if there is room.
    pub(crate) fn label(&mut self, label: Property) {
        if self.labels.len() < limits::MOST_LABELS {
            self.links.extend(Link::of(&label.name, &label.value));
            self.labels.push(label);
        }
    }

    /// Adds an attempt after the others. Beyond the limit, it replaces the last one.
    pub(crate) fn push(&mut self, attempt: Attempt) {
        self.attempts.truncate(limits::MOST_ATTEMPTS - 1);
        self.attempts.push(attempt);
    }

    /// Returns the suites, class and name, without empty and repeated parts.
    pub fn path(&self) -> Vec<&str> {
        let mut path: Vec<&str> = self.suites.iter().map(String::as_str).collect();
        path.extend([self.class.as_str(), self.name.as_str()]);
        path.retain(|part| !part.is_empty());
        path.dedup();
        path
    }

    /// Returns the parameters as one text, such as `Project=firefox, Locale=de`.
    pub fn variant(&self) -> String {
        let text = |property: &Property| format!("{}={}", property.name, property.value);
        self.parameters.iter().map(text).collect::<Vec<_>>().join(", ")
    }

    /// Returns the name of the test for the catalog.
    pub fn title(&self) -> String {
        if self.name.is_empty() { self.identifier() } else { shortened(&self.name) }
    }
}
