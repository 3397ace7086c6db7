//! The instances of an export, in any format.

use assay_ledger::{instance::steps::StoredStep, progress::instance::Outcome};
use assay_proto::{Label, Link, TestResult};

/// The number of tests in a file, by result.
#[derive(Clone, Copy, Debug, Default, PartialEq, sqlx::FromRow)]
pub(super) struct Totals {
    pub(super) tests: i64,
    pub(super) failures: i64,
    pub(super) errors: i64,
    pub(super) skipped: i64,
}

/// An attempt at a test that was followed by another one.
pub(super) struct EarlierAttempt {
    pub(super) result: TestResult,
    pub(super) seconds: f64,
    pub(super) steps: Vec<StoredStep>,
}

/// An instance of a test.
pub(super) struct Instance<'i> {
    pub(super) identifier: &'i str,
    pub(super) title: &'i str,
    pub(super) suites: &'i [String],
    pub(super) labels: &'i [Label],
    pub(super) links: &'i [Link],
    /// Parameters of the instance.
    pub(super) variant: &'i str,
    pub(super) outcome: Outcome,
    pub(super) steps: &'i [StoredStep],
    pub(super) earlier: &'i [EarlierAttempt],
}

impl<'i> Instance<'i> {
    /// Splits the identifier into class and name, which readers join with a dot.
    pub(super) fn names(&self) -> (Option<&'i str>, &'i str) {
        let (identifier, title) = (self.identifier, self.title);
        let class = identifier.strip_suffix(title).and_then(|rest| rest.strip_suffix('.'));
        let is_kept = |text: &str| !text.is_empty() && text.trim() == text;
        match class {
            Some(class) if is_kept(class) && is_kept(title) => (Some(class), title),
            _ => (None, identifier),
        }
    }
}
