//! Rules for monitors.

use assay_judge::monitor::{Measure, Monitor as Thresholds};
use assay_proto::{
    Fault,
    execution::{AlarmAction, Monitor, MonitorInput, MonitorMeasure},
};
use assay_records::{Check, branch};

/// Maximum number of monitors of a project.
pub(super) const MOST: i64 = 50;

const RUNS: i32 = 20;
const MOST_RUNS: i32 = 50;
const FEWEST_RUNS: i32 = 5;
const RECOVER_AFTER: i32 = 10;

const LONGEST_BRANCH: usize = 255;

/// Returns a monitor with its defaults, if it is valid.
pub(super) fn valid(mut input: MonitorInput) -> Result<MonitorInput, Fault> {
    let mut check = Check::default();
    check.name_on_one_line("Name", &input.name);
    if input.measure() == MonitorMeasure::Unspecified {
        check.refuse("Measure", "must be PassOnRetry, Recoveries, FailureRate or Duration");
    }
    if input.action() == AlarmAction::Unspecified {
        check.refuse("Action", "must be Mute, Skip or Notify");
    }
    let is_rate = input.measure() == MonitorMeasure::FailureRate;
    if !input.threshold.is_finite() || input.threshold <= 0.0 {
        check.refuse("Threshold", "must be more than 0");
    } else if is_rate && input.threshold > 100.0 {
        check.refuse("Threshold", "must be at most 100 %");
    } else {
        check.amount("Threshold", input.threshold);
    }
    let runs = *input.runs.get_or_insert(RUNS);
    check.range("Runs", runs, FEWEST_RUNS..=MOST_RUNS);
    let recover_after = *input.recover_after.get_or_insert(RECOVER_AFTER);
    check.range("RecoverAfter", recover_after, 1..=MOST_RUNS);
    let pattern = input.branch.get_or_insert_default();
    if !pattern.is_empty() {
        branch::check(&mut check, "Branch", pattern, LONGEST_BRANCH);
    }
    check.done().map(|()| input)
}

/// Whether a change makes other test cases reach the threshold, or acts in another way on them, so that the
/// monitor begins again.
pub(super) fn begins_again(current: &Monitor, input: &MonitorInput) -> bool {
    (current.measure(), current.action(), current.dry_run)
        != (input.measure(), input.action(), input.dry_run)
        || Some(&current.branch) != input.branch.as_ref()
}

/// Whether a monitor measures the executions of a branch, which may be the default branch or none.
pub(super) fn measures(monitor: &Monitor, branch: &str, is_of_default_branch: bool) -> bool {
    if monitor.branch.is_empty() {
        return is_of_default_branch;
    }
    branch::matches(&monitor.branch, branch)
}

/// Returns the thresholds of a stored monitor.
pub(super) fn thresholds(monitor: &Monitor) -> Thresholds {
    let number = |stored: i32| usize::try_from(stored).unwrap_or_default();
    Thresholds {
        measure: match monitor.measure() {
            MonitorMeasure::PassOnRetry => Measure::PassOnRetry,
            MonitorMeasure::Recoveries => Measure::Recoveries,
            MonitorMeasure::Duration => Measure::Duration,
            MonitorMeasure::FailureRate | MonitorMeasure::Unspecified => Measure::FailureRate,
        },
        runs: number(monitor.runs),
        threshold: monitor.threshold,
        recover_after: number(monitor.recover_after),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_branches_of_a_pattern_are_measured_and_without_one_the_default_branch() {
        let of = |branch: &str| Monitor { branch: branch.to_owned(), ..Monitor::default() };
        for (monitor, branch, is_of_default_branch, expected) in [
            ("", "main", true, true),
            ("", "", true, true),
            ("", "feature", false, false),
            ("feature", "feature", false, true),
            ("feature", "main", true, false),
            ("feature", "", true, false),
            ("feature/*", "feature/cart", false, true),
            ("*", "feature", false, true),
            ("*", "", true, false),
        ] {
            let measured = measures(&of(monitor), branch, is_of_default_branch);
            assert_eq!(measured, expected, "{monitor} {branch}");
        }
    }
}
