//! The rules for verdicts.

use assay_judge::is_outage;
use assay_proto::{
    ExecutionStatistic, ExecutionStatus,
    catalog::Gate,
    execution::{ChangeCounts, RuleOutcome, VerdictState},
};

use crate::progress::execution::Unreached;

/// Maximum number of test cases that a message lists.
const MOST_LISTED: usize = 5;

/// The results and limits that a verdict depends on.
#[derive(Clone, Copy)]
pub struct Facts<'f> {
    pub status: ExecutionStatus,
    pub statistic: &'f ExecutionStatistic,
    pub changes: &'f ChangeCounts,
    /// The number of new failures that are not muted.
    pub new_failures: i32,
    /// The required test cases without a result.
    pub not_executed: &'f [String],
    pub unreached: Unreached,
}

impl Facts<'_> {
    /// Returns the outcome of each rule that applies, or nothing before the execution has ended.
    pub fn outcomes(self, gate: &Gate) -> Option<Vec<RuleOutcome>> {
        if !matches!(self.status, ExecutionStatus::Completed | ExecutionStatus::Canceled) {
            return None;
        }
        let mut rules = vec![self.complete(), self.new_failures(gate.max_new_failures)];
        rules.extend(self.environment());
        if !gate.allow_known_failures {
            rules.push(self.known_failures());
        }
        rules.extend(gate.max_flaky_tests.map(|most| self.flaky_tests(most)));
        rules.extend(gate.min_pass_rate.map(|least| self.pass_rate(least)));
        if !gate.required_test_cases.is_empty() {
            rules.push(self.required_test_cases(gate.required_test_cases.len()));
        }
        Some(rules)
    }

    /// Whether the verdict depends on the rules of a gate: an execution that broke off, or in which nearly
    /// everything failed, passes none.
    pub fn depends_on_gate(self) -> bool {
        self.complete().is_met && self.environment().is_none()
    }

    fn executed(self) -> i32 {
        let statistic = self.statistic;
        statistic.test_cases_passed + statistic.test_cases_failed + statistic.test_cases_with_error
    }

    /// Applies always: an execution that broke off says nothing about what it did not reach.
    fn complete(self) -> RuleOutcome {
        let aborted = self.statistic.test_cases_aborted;
        let Unreached { missing_reporters, stopped_test_cases } = self.unreached;
        let (is_met, message) = if self.status == ExecutionStatus::Canceled {
            (false, "the execution was canceled".to_owned())
        } else if aborted > 0 {
            (false, format!("{} aborted", test_cases(aborted)))
        } else if missing_reporters > 0 {
            (false, format!("{} did not complete", number(missing_reporters, "reporter")))
        } else if stopped_test_cases > 0 {
            (false, format!("{} not run after a failure", test_cases(stopped_test_cases)))
        } else if self.executed() == 0 {
            (false, "no test case was executed".to_owned())
        } else {
            (true, format!("{} executed", test_cases(self.executed())))
        };
        outcome("Complete", is_met, message)
    }

    /// Applies to an execution in which nearly everything failed: its failures say little about tests. Those
    /// that somebody has muted are understood.
    pub(super) fn environment(self) -> Option<RuleOutcome> {
        let statistic = self.statistic;
        let failed =
            statistic.test_cases_failed + statistic.test_cases_with_error - self.changes.muted;
        let message = format!(
            "{failed} of {} failed, which is evidence about the environment rather than about the tests",
            test_cases(self.executed())
        );
        is_outage(self.executed(), failed).then(|| outcome("Environment", false, message))
    }

    fn new_failures(self, most: i32) -> RuleOutcome {
        let count = self.new_failures;
        let message = format!("{}, at most {most} allowed", number(count, "new failure"));
        outcome("NewFailures", count <= most, message)
    }

    fn known_failures(self) -> RuleOutcome {
        let count = self.changes.muted;
        let message = format!("{}, none allowed", number(count, "known failure"));
        outcome("KnownFailures", count == 0, message)
    }

    fn flaky_tests(self, most: i32) -> RuleOutcome {
        let count = self.changes.flaky - self.changes.muted_flaky;
        let message = format!("{}, at most {most} allowed", number(count, "flaky test"));
        outcome("FlakyTests", count <= most, message)
    }

    /// Muted failures count neither as passed nor as executed.
    fn pass_rate(self, least: f64) -> RuleOutcome {
        let muted = self.changes.muted;
        let (passed, executed) = (self.statistic.test_cases_passed, self.executed() - muted);
        let rate = 100.0 * f64::from(passed) / f64::from(executed.max(1));
        // Rounded down, so that a rate that is too low does not look like the required one.
        let tenths = 1000 * i64::from(passed) / i64::from(executed.max(1));
        let without = if muted > 0 { format!(" without {muted} muted") } else { String::new() };
        let message = format!(
            "{passed} of {}{without} passed ({}.{} %), at least {least} % required",
            test_cases(executed),
            tenths / 10,
            tenths % 10
        );
        // If all of them are muted, none is left that could be too many.
        outcome("PassRate", rate >= least || (executed == 0 && muted > 0), message)
    }

    fn required_test_cases(self, required: usize) -> RuleOutcome {
        let missing = self.not_executed;
        let message = if missing.is_empty() {
            format!("all {required} required test cases executed")
        } else {
            let listed = missing.iter().take(MOST_LISTED).map(String::as_str).collect::<Vec<_>>();
            let more = if missing.len() > MOST_LISTED { ", …" } else { "" };
            format!("{} of {required} not executed: {}{more}", missing.len(), listed.join(", "))
        };
        outcome("RequiredTestCases", missing.is_empty(), message)
    }
}

/// Returns the state that follows from the outcomes of rules, or of an execution before its end.
pub fn state(rules: Option<&[RuleOutcome]>) -> VerdictState {
    match rules {
        None => VerdictState::Pending,
        Some(rules) if rules.iter().all(|rule| rule.is_met) => VerdictState::Passed,
        Some(_) => VerdictState::Failed,
    }
}

fn outcome(rule: &str, is_met: bool, message: String) -> RuleOutcome {
    RuleOutcome { rule: rule.to_owned(), is_met, message }
}

fn number(count: i32, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

fn test_cases(count: i32) -> String {
    number(count, "test case")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A completed execution of ten test cases, nine of which passed.
    fn statistic() -> ExecutionStatistic {
        ExecutionStatistic {
            test_cases_total: 10,
            test_cases_passed: 9,
            test_cases_failed: 1,
            ..Default::default()
        }
    }

    fn gate() -> Gate {
        Gate { allow_known_failures: true, ..Gate::default() }
    }

    /// Returns the rules that are not met.
    fn unmet(facts: Facts<'_>, gate: &Gate) -> Vec<String> {
        let outcomes = facts.outcomes(gate).unwrap().into_iter();
        outcomes.filter(|rule| !rule.is_met).map(|rule| rule.rule).collect()
    }

    #[test]
    fn every_rule_can_fail_an_execution() {
        let (statistic, changes) = (statistic(), ChangeCounts::default());
        let facts = Facts {
            status: ExecutionStatus::Completed,
            statistic: &statistic,
            changes: &changes,
            new_failures: 0,
            not_executed: &[],
            unreached: Unreached::default(),
        };
        assert_eq!(unmet(facts, &gate()), Vec::<String>::new());

        assert_eq!(unmet(Facts { new_failures: 1, ..facts }, &gate()), ["NewFailures"]);
        let two = Gate { max_new_failures: 2, ..gate() };
        assert!(unmet(Facts { new_failures: 2, ..facts }, &two).is_empty());
        let muted = ChangeCounts { muted: 1, flaky: 2, ..Default::default() };
        let strict = Gate { allow_known_failures: false, max_flaky_tests: Some(1), ..gate() };
        let of_muted = Facts { changes: &muted, ..facts };
        assert!(unmet(of_muted, &gate()).is_empty());
        assert_eq!(unmet(of_muted, &strict), ["KnownFailures", "FlakyTests"]);
        let rate = |least| Gate { min_pass_rate: Some(least), ..gate() };
        assert!(unmet(facts, &rate(90.0)).is_empty());
        assert_eq!(unmet(facts, &rate(90.1)), ["PassRate"]);
        assert!(unmet(of_muted, &rate(100.0)).is_empty());
        let muted_flaky = ChangeCounts { muted: 1, flaky: 2, muted_flaky: 1, ..Default::default() };
        let one_flaky = Gate { max_flaky_tests: Some(1), ..gate() };
        assert!(unmet(Facts { changes: &muted_flaky, ..facts }, &one_flaky).is_empty());
        let required = Gate { required_test_cases: vec!["a".to_owned()], ..gate() };
        assert!(unmet(facts, &required).is_empty());
        let missing = ["a".to_owned()];
        assert_eq!(
            unmet(Facts { not_executed: &missing, ..facts }, &required),
            ["RequiredTestCases"]
        );
    }

    #[test]
    fn a_pass_rate_that_is_too_low_does_not_look_like_the_required_one() {
        let outcome = |passed, failed, least| {
            let statistic = ExecutionStatistic {
                test_cases_passed: passed,
                test_cases_failed: failed,
                ..Default::default()
            };
            let facts = Facts {
                status: ExecutionStatus::Completed,
                statistic: &statistic,
                changes: &ChangeCounts::default(),
                new_failures: 0,
                not_executed: &[],
                unreached: Unreached::default(),
            };
            let RuleOutcome { is_met, message, .. } = facts.pass_rate(least);
            (is_met, message)
        };
        for (passed, failed, least, is_met, message) in [
            (2999, 1, 100.0, false, "2999 of 3000 test cases passed (99.9 %)"),
            (899, 101, 90.0, false, "899 of 1000 test cases passed (89.9 %)"),
            (333, 667, 33.3, true, "333 of 1000 test cases passed (33.3 %)"),
            (1, 0, 100.0, true, "1 of 1 test case passed (100.0 %)"),
            (0, 0, 0.0, true, "0 of 0 test cases passed (0.0 %)"),
        ] {
            let message = format!("{message}, at least {least} % required");
            assert_eq!(outcome(passed, failed, least), (is_met, message));
        }
    }

    #[test]
    fn an_outage_does_not_pass_whatever_the_gate_allows() {
        let statistic = |failed| ExecutionStatistic {
            test_cases_total: 20,
            test_cases_passed: 20 - failed,
            test_cases_failed: failed,
            ..Default::default()
        };
        let allowing = Gate { max_new_failures: 1000, ..gate() };
        for (failed, muted, expected) in [(16, 0, &[][..]), (17, 0, &["Environment"]), (17, 1, &[])]
        {
            let facts = Facts {
                status: ExecutionStatus::Completed,
                statistic: &statistic(failed),
                changes: &ChangeCounts { muted, ..Default::default() },
                new_failures: failed,
                not_executed: &[],
                unreached: Unreached::default(),
            };
            assert_eq!(unmet(facts, &allowing), expected, "{failed} failures");
        }
    }

    #[test]
    fn an_execution_that_broke_off_or_is_empty_does_not_pass() {
        let changes = ChangeCounts::default();
        let aborted = ExecutionStatistic { test_cases_aborted: 1, ..statistic() };
        let (empty, passed) = (ExecutionStatistic::default(), statistic());
        let facts = |status, statistic| Facts {
            status,
            statistic,
            changes: &changes,
            new_failures: 0,
            not_executed: &[],
            unreached: Unreached::default(),
        };
        let complete = |status, statistic| unmet(facts(status, statistic), &gate());
        assert_eq!(complete(ExecutionStatus::Completed, &aborted), ["Complete"]);
        assert_eq!(complete(ExecutionStatus::Completed, &empty), ["Complete"]);
        assert_eq!(complete(ExecutionStatus::Canceled, &passed), ["Complete"]);
        for (missing_reporters, stopped_test_cases) in [(1, 0), (0, 1)] {
            let unreached = Unreached { missing_reporters, stopped_test_cases };
            let facts = Facts { unreached, ..facts(ExecutionStatus::Completed, &passed) };
            assert_eq!(unmet(facts, &gate()), ["Complete"]);
        }
        assert!(facts(ExecutionStatus::Running, &passed).outcomes(&gate()).is_none());
    }
}
