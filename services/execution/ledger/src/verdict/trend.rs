//! Whether an execution is worse or better than the one before it.

use assay_proto::{Trend, execution::VerdictState};

use super::rules::Facts;

/// How an execution has ended, as far as it is compared with others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Standing {
    /// Whether its verdict is `Passed`.
    has_passed: bool,
    /// Whether a test case has failed or was aborted, muted or not.
    has_failures: bool,
    /// Whether it has new failures that are not muted. Those of an outage say nothing about tests.
    has_new_failures: bool,
}

impl Standing {
    /// Returns the standing of an execution with these facts and this verdict.
    pub(super) fn of(facts: Facts<'_>, verdict: VerdictState) -> Self {
        let statistic = facts.statistic;
        let failures = statistic.test_cases_failed
            + statistic.test_cases_with_error
            + statistic.test_cases_aborted;
        Self {
            has_passed: verdict == VerdictState::Passed,
            has_failures: failures > 0,
            has_new_failures: facts.new_failures > 0 && facts.environment().is_none(),
        }
    }

    pub(super) fn has_failures(self) -> bool {
        self.has_failures
    }

    fn is_fine(self) -> bool {
        self.has_passed && !self.has_failures
    }
}

/// Compares an execution with the one before it. Without one, the verdict and new failures decide: known failures
/// of the default branch do not count as new on another one.
pub(super) fn trend(now: Standing, before: Option<Standing>) -> Trend {
    let before = before.unwrap_or(Standing { has_passed: true, ..now });
    let has_failed = before.has_passed && !now.has_passed;
    let has_broken = !before.has_failures && now.has_failures;
    if now.has_new_failures || has_failed || has_broken {
        Trend::Worse
    } else if now.is_fine() && !before.is_fine() {
        Trend::Better
    } else {
        Trend::Same
    }
}

/// How the tests of an owner have ended in an execution, in which one of them fails unmuted or is fixed, and in the
/// one before it.
#[derive(Clone, Debug, sqlx::FromRow)]
pub(super) struct TestsOfOwner {
    pub(super) owner: String,
    /// Whether one has failed or was aborted, muted or not.
    pub(super) has_failures: bool,
    /// Whether one has a new failure that is not muted.
    pub(super) has_new_failures: bool,
    /// Whether one had failed or was aborted in the execution before.
    pub(super) had_failures: bool,
}

/// Compares the tests of an owner with those in the execution before, as [`trend`] compares executions: the verdict,
/// which is about all tests, does not count. Without one before, only new failures do.
pub(super) fn trend_of_owner(tests: &TestsOfOwner, is_outage: bool, is_first: bool) -> Trend {
    let has_new_failures = tests.has_new_failures && !is_outage;
    let has_broken = tests.has_failures && !tests.had_failures && !is_first;
    if has_new_failures || has_broken {
        Trend::Worse
    } else if tests.has_failures {
        Trend::Same
    } else {
        // One of them is fixed.
        Trend::Better
    }
}

#[cfg(test)]
mod tests {
    use assay_proto::{ExecutionStatistic, ExecutionStatus, execution::ChangeCounts};

    use super::*;
    use crate::progress::execution::Unreached;

    /// Returns the standing of a letter: `P` passed; `K` has only known failures, which its verdict allows; `N` has
    /// new failures that its gate allows; `F` has new failures and a failed verdict; `S` has failed as before, and
    /// its gate allows no failures; `G` fails its gate although no test case failed, for example because of flaky
    /// tests.
    fn standing(letter: char) -> Standing {
        let [has_passed, has_failures, has_new_failures] = match letter {
            'P' => [true, false, false],
            'K' => [true, true, false],
            'N' => [true, true, true],
            'F' => [false, true, true],
            'S' => [false, true, false],
            'G' => [false, false, false],
            other => panic!("no standing {other}"),
        };
        Standing { has_passed, has_failures, has_new_failures }
    }

    #[test]
    fn an_execution_is_worse_with_new_failures_a_failed_verdict_or_the_first_failures() {
        let letters = ['P', 'K', 'N', 'F', 'S', 'G'];
        for (before, expected) in [
            // The first execution of a series.
            (None, "==WWWW"),
            (Some('P'), "=WWWWW"),
            (Some('K'), "B=WWWW"),
            (Some('N'), "B=WWWW"),
            (Some('F'), "B=WW=="),
            (Some('S'), "B=WW=="),
            (Some('G'), "BWWWW="),
        ] {
            let found: String = letters
                .iter()
                .map(|now| match trend(standing(*now), before.map(standing)) {
                    Trend::Worse => 'W',
                    Trend::Better => 'B',
                    _ => '=',
                })
                .collect();
            assert_eq!(found, expected, "after {before:?}, for {letters:?}");
        }
    }

    #[test]
    fn the_tests_of_an_owner_are_worse_with_new_failures_or_the_first_failures() {
        let of = |[has_failures, has_new_failures, had_failures]: [bool; 3]| TestsOfOwner {
            owner: "Ada".to_owned(),
            has_failures,
            has_new_failures,
            had_failures,
        };
        let (fails, is_new, failed) = (true, true, true);
        for (tests, expected, in_outage, at_first) in [
            (of([fails, is_new, failed]), Trend::Worse, Trend::Same, Trend::Worse),
            (of([fails, is_new, false]), Trend::Worse, Trend::Worse, Trend::Worse),
            (of([fails, false, failed]), Trend::Same, Trend::Same, Trend::Same),
            (of([fails, false, false]), Trend::Worse, Trend::Worse, Trend::Same),
            (of([false, false, failed]), Trend::Better, Trend::Better, Trend::Better),
            (of([false, false, false]), Trend::Better, Trend::Better, Trend::Better),
        ] {
            assert_eq!(trend_of_owner(&tests, false, false), expected, "{tests:?}");
            assert_eq!(trend_of_owner(&tests, true, false), in_outage, "{tests:?} in an outage");
            assert_eq!(trend_of_owner(&tests, false, true), at_first, "{tests:?} at first");
        }
    }

    #[test]
    fn the_failures_of_an_outage_are_not_new_each_time() {
        let statistic = ExecutionStatistic {
            test_cases_total: 100,
            test_cases_failed: 100,
            ..ExecutionStatistic::default()
        };
        let facts = Facts {
            status: ExecutionStatus::Completed,
            statistic: &statistic,
            changes: &ChangeCounts::default(),
            new_failures: 100,
            not_executed: &[],
            unreached: Unreached::default(),
        };
        let outage = Standing::of(facts, VerdictState::Failed);
        assert_eq!(trend(outage, Some(standing('P'))), Trend::Worse);
        assert_eq!(trend(outage, Some(outage)), Trend::Same);
        assert_eq!(trend(standing('P'), Some(outage)), Trend::Better);
    }
}
