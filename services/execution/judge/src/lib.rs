//! Judges the result of a test by its history: what is new, what is flaky, and what is fixed.
//!
//! Everything here is pure, so that results that arrive, `verify`, `rebuild` and backtests judge alike.
//!
//! A test is stable or flaky. A *break* is a row of failures that a pass ends. A test is flaky if it has recovered from
//! several short breaks, has both passed and failed on one commit, or has passed after a retry. A failure of a stable
//! test that passed before is new; a failure of a flaky test says nothing about the change under test.
//!
//! The rule never misses the first failure of a stable test: one earlier break, however short, does not make
//! a test flaky. The price is that the first failures of a rarely flaky test count as new, since a
//! regression begins in the same way.
//!
//! A flaky test that breaks for good is not new when it begins to fail, since that looks like a short break. It is new
//! once, when it has failed in a row for so long that its flakiness does not explain it.

mod history;
pub mod monitor;
mod sentence;
mod slowdown;

pub use self::{
    history::{History, Run, Series},
    slowdown::Slowdown,
};

/// The thresholds of the rule. The default misses no regression of a stable test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Number of the last runs, of the series and of the default branch together, that count.
    pub runs: usize,
    /// Number of short breaks from which on a test is flaky.
    pub breaks: usize,
    /// Maximum number of failures in a row of a short break.
    pub longest_break: usize,
}

impl Default for Rule {
    fn default() -> Self {
        Self { runs: 50, breaks: 2, longest_break: 2 }
    }
}

/// The result of a run that is judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Passed,
    /// Passed after an attempt that failed.
    PassedOnRetry,
    Failed,
}

/// How a result differs from the history of its test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Change {
    /// It passed, as before.
    None,
    /// It fails, and was stable and passed, or never ran; or it is flaky and has failed for too long.
    New,
    /// It fails as before, for the same cause.
    Still,
    /// It fails as before, for another cause.
    CauseChanged,
    /// It passed, was stable and failed.
    Fixed,
    /// It fails and is flaky, or passed on a retry.
    Flaky,
}

/// A judgement, with the sentence that explains it to the person who reads it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judgement {
    pub change: Change,
    /// Such as `failed in 9 of its last 20 runs, so this is not new`. Empty for [`Change::None`].
    pub reason: String,
}

/// Judges the result of a run of a test on a commit, which is empty if it is unknown. `has_same_cause` says
/// whether a failure has the cause of the last one, if that failed.
pub fn judge(
    outcome: Outcome,
    commit: &str,
    has_same_cause: bool,
    history: &History<'_>,
    rule: Rule,
) -> Judgement {
    let evidence = history.evidence(outcome, commit, rule);
    let change = match outcome {
        Outcome::PassedOnRetry => Change::Flaky,
        Outcome::Passed if !evidence.failed_before || evidence.is_flaky(rule) => Change::None,
        Outcome::Passed => Change::Fixed,
        Outcome::Failed if evidence.is_flaky(rule) && !evidence.is_broken(rule) => Change::Flaky,
        Outcome::Failed if !evidence.failed_before || evidence.is_unexplained(rule) => Change::New,
        Outcome::Failed if has_same_cause => Change::Still,
        Outcome::Failed => Change::CauseChanged,
    };
    Judgement { change, reason: sentence::of(change, outcome, &evidence, rule) }
}

/// Number of executed tests from which on the failure of most of them is evidence about the environment.
pub const OUTAGE_OF: i32 = 10;

/// Percentage of failures above which it is.
pub const OUTAGE_PERCENT: i32 = 80;

/// Whether so many failures among the executed tests of an execution are evidence about the environment
/// rather than about the tests.
pub fn is_outage(executed: i32, failed: i32) -> bool {
    executed >= OUTAGE_OF
        && 100 * i64::from(failed) > i64::from(OUTAGE_PERCENT) * i64::from(executed)
}
