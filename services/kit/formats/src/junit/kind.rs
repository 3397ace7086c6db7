//! The elements of problems.

use crate::{Nature, xml::Attributes};

/// Name of the element for a warning about a test.
pub(super) const WARNING: &str = "warning";

/// Meaning of a problem for its test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Kind {
    pub(super) nature: Nature,
    pub(super) when: When,
}

/// Attempt in which a problem occurred, for tools that retry failed tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum When {
    /// The only attempt, or the first one of a test that failed every time.
    Decisive,
    /// A further attempt of a test that failed every time.
    Repeated,
    /// An attempt of a test that passed in a later one.
    Flaky,
}

impl Kind {
    /// Returns the meaning of an element of this name.
    pub(super) fn named(name: &str) -> Option<Self> {
        use Nature::{Error, Failure};
        use When::{Decisive, Flaky, Repeated};
        let (nature, when) = match name {
            "failure" => (Failure, Decisive),
            "error" => (Error, Decisive),
            "rerunFailure" => (Failure, Repeated),
            "rerunError" => (Error, Repeated),
            "flakyFailure" => (Failure, Flaky),
            "flakyError" => (Error, Flaky),
            _ => return None,
        };
        Some(Self { nature, when })
    }

    /// Returns the meaning of a warning of `PHPUnit` instead of tests that it cannot run. With a warning about a
    /// test that has run, such as one on a deprecated assertion, a run passes. Other tools only warn.
    pub(super) fn of_warning(name: &str, attributes: &Attributes<'_>) -> Option<Self> {
        if name != WARNING {
            return None;
        }
        let class = attributes.get("type").unwrap_or_default();
        let kind = Self { nature: Nature::Failure, when: When::Decisive };
        class.starts_with("PHPUnit").then_some(kind)
    }
}
