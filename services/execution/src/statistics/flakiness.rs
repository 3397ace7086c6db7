//! The flakiness of a test case: how often its outcome changes although nothing else does.
//!
//! The score is the flip rate (Kowalczyk et al., *Modeling and Ranking Flaky Tests at Apple*, 2020)
//! between runs of the same software in the same environment. A test that fails since a new version
//! is not flaky; the version may be at fault.

use std::collections::HashMap;

use assay_proto::{TestResult, execution::TestCaseRun};

/// Maximum number of runs that a score considers.
pub(super) const WINDOW: usize = 20;

/// Sets the score of each run. The runs are ordered from the latest to the earliest. A score
/// considers the runs that follow.
pub(super) fn score(runs: &mut [TestCaseRun]) {
    for newest in 0..runs.len() {
        let oldest = runs.len().min(newest + WINDOW);
        runs[newest].flakiness_score = flip_rate(&runs[newest..oldest]);
    }
}

fn flip_rate(runs: &[TestCaseRun]) -> f64 {
    let (mut earlier, mut compared, mut flips) = (HashMap::new(), 0_u32, 0_u32);
    for run in runs.iter().rev() {
        let Some(passed) = outcome(run.result()) else { continue };
        let circumstances = (&run.software_version_id, &run.environment_id);
        if let Some(before) = earlier.insert(circumstances, passed) {
            compared += 1;
            flips += u32::from(before != passed);
        }
        if run.is_flaky {
            // Its attempts are comparable runs of which only the last one passed.
            compared += 1;
            flips += 1;
        }
    }
    if compared == 0 { 0.0 } else { f64::from(flips) / f64::from(compared) }
}

/// Returns whether a run passed. `None` if it did not run to its end.
fn outcome(result: TestResult) -> Option<bool> {
    match result {
        TestResult::Passed => Some(true),
        TestResult::Failed | TestResult::Error => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the score of the last of these runs: the version of the software, and `+` or `-`.
    fn latest_score(runs: &[(&str, char)]) -> f64 {
        let run = |(software, outcome): &(&str, char)| {
            let result = match outcome {
                '+' => TestResult::Passed,
                '-' => TestResult::Failed,
                _ => TestResult::Aborted,
            };
            let software_version_id = Some((*software).to_owned());
            TestCaseRun { result: result.into(), software_version_id, ..TestCaseRun::default() }
        };
        let mut runs: Vec<_> = runs.iter().rev().map(run).collect();
        score(&mut runs);
        runs.first().map_or(0.0, |run| run.flakiness_score)
    }

    fn of(outcomes: &str) -> f64 {
        latest_score(&outcomes.chars().map(|outcome| ("1.0", outcome)).collect::<Vec<_>>())
    }

    #[test]
    fn the_score_is_the_rate_of_changes() {
        for (outcomes, expected) in [
            ("", 0.0),
            ("+", 0.0),
            ("++++", 0.0),
            ("----", 0.0),
            ("+-+-+", 1.0),
            ("++--+", 0.5),
            ("+-++", 2.0 / 3.0),
            // Aborted runs do not count.
            ("+a+a-", 0.5),
        ] {
            assert!((of(outcomes) - expected).abs() < 1e-12, "{outcomes}");
        }
    }

    #[test]
    fn a_run_that_passed_after_retries_counts_as_a_change() {
        let run = |is_flaky| TestCaseRun {
            result: TestResult::Passed.into(),
            is_flaky,
            ..TestCaseRun::default()
        };
        let mut runs = [run(false), run(true), run(false)];
        score(&mut runs);
        let scores = runs.map(|run| run.flakiness_score);
        assert!((scores[0] - 1.0 / 3.0).abs() < 1e-12, "{scores:?}");
    }

    #[test]
    fn regressions_are_not_flaky() {
        let runs = [("1.0", '+'), ("1.0", '+'), ("2.0", '-'), ("2.0", '-'), ("2.1", '+')];
        assert!(latest_score(&runs) < f64::EPSILON);
        // Alternating versions are each compared with themselves.
        let runs = [("1.0", '+'), ("2.0", '-'), ("1.0", '+'), ("2.0", '-')];
        assert!(latest_score(&runs) < f64::EPSILON);
    }

    #[test]
    fn runs_before_the_window_do_not_count() {
        let long_ago = format!("+-+-{}", "+".repeat(WINDOW));
        assert!(of(&long_ago) < f64::EPSILON);
        assert!(of(&long_ago[..WINDOW]) > 0.0);
    }
}
