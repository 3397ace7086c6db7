//! Numbers that reports state about themselves, and those of what was found in them.

/// Numbers of tests that were passed on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    pub(crate) tests: usize,
    /// Tests with an attempt that failed.
    pub(crate) failed: usize,
    /// Tests whose last attempt failed, which a flaky test did not.
    pub(crate) red: usize,
    pub(crate) skipped: usize,
}

impl Tally {
    /// Returns the numbers since an earlier state.
    pub(crate) fn since(self, earlier: Self) -> Self {
        Self {
            tests: self.tests - earlier.tests,
            failed: self.failed - earlier.failed,
            red: self.red - earlier.red,
            skipped: self.skipped - earlier.skipped,
        }
    }

    /// Adds the numbers of a part.
    pub(crate) fn add(&mut self, part: Self) {
        self.tests += part.tests;
        self.failed += part.failed;
        self.red += part.red;
        self.skipped += part.skipped;
    }
}

/// Numbers that a report, or a suite in it, states about itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Claims {
    pub(crate) tests: Option<usize>,
    /// Failures and errors.
    pub(crate) failures: Option<usize>,
    /// Skipped tests, which some tools count and do not list.
    pub(crate) skipped: Option<usize>,
}

impl Claims {
    /// Adds failures of one kind, if their number is known.
    pub(crate) fn add_failures(&mut self, text: &str) {
        if let Some(failures) = count(text) {
            self.failures = Some(self.failures.unwrap_or_default().saturating_add(failures));
        }
    }
}

/// Parses a number of tests. Anything else is unknown.
pub(crate) fn count(text: &str) -> Option<usize> {
    text.trim().parse().ok()
}
