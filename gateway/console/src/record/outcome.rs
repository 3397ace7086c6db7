//! Results of tests.

use serde::Deserialize;

/// The result of a test, or that there is none.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq)]
pub enum Outcome {
    Passed,
    Failed,
    Error,
    Aborted,
    Canceled,
    NotExecuted,
    /// An execution does not have the test case.
    #[default]
    #[serde(other)]
    Absent,
}

impl Outcome {
    /// The results of the interface.
    pub(crate) const EACH: [Self; 6] =
        [Self::Passed, Self::Failed, Self::Error, Self::Aborted, Self::Canceled, Self::NotExecuted];

    /// Returns the name in the interface.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Passed => "Passed",
            Self::Failed => "Failed",
            Self::Error => "Error",
            Self::Aborted => "Aborted",
            Self::Canceled => "Canceled",
            Self::NotExecuted => "NotExecuted",
            Self::Absent => "",
        }
    }

    /// Reads a letter of a history.
    pub(crate) fn of_letter(letter: char) -> Self {
        match letter {
            'P' => Self::Passed,
            'F' => Self::Failed,
            'E' => Self::Error,
            'A' => Self::Aborted,
            'C' => Self::Canceled,
            'N' => Self::NotExecuted,
            _ => Self::Absent,
        }
    }

    pub(crate) fn is_failure(self) -> bool {
        matches!(self, Self::Failed | Self::Error)
    }

    /// Returns whether the test has passed or failed.
    pub(crate) fn is_judged(self) -> bool {
        self == Self::Passed || self.is_failure()
    }

    /// Returns whether the test has run, so that it has taken some time.
    pub fn has_run(self) -> bool {
        !matches!(self, Self::Canceled | Self::NotExecuted | Self::Absent)
    }

    /// Returns the label of the result of a test.
    pub fn label(self) -> &'static str {
        match self {
            Self::Canceled => "Skipped",
            Self::NotExecuted => "Not executed",
            Self::Absent => "No result",
            other => other.name(),
        }
    }

    /// Returns the label of the result of an execution, of which some tests failed and others may have
    /// had an error.
    pub fn summary(self) -> &'static str {
        match self {
            Self::Error => Self::Failed.label(),
            Self::Canceled => self.name(),
            other => other.label(),
        }
    }

    /// Returns the CSS class of the result.
    pub(crate) fn class(self) -> &'static str {
        match self {
            Self::Passed => "pass",
            Self::Failed | Self::Error => "fail",
            Self::Aborted => "warn",
            Self::Canceled | Self::NotExecuted | Self::Absent => "none",
        }
    }
}
