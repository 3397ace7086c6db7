//! How flaky a test case is: how often its outcome changes though nothing else does.
//!
//! This is the flip rate (Kowalczyk et al., *Modeling and Ranking Flaky Tests at Apple*, 2020), of
//! runs of the same software in the same environment only: that a test fails from a new version on
//! says something about the version.

use std::collections::HashMap;

use assay_proto::{TestResult, execution::TestCaseRun};

/// How many runs a score looks at.
pub(super) const WINDOW: usize = 20;

/// Gives each run its score. The runs are the latest first; of the last ones, those before them
/// have to be there too, as far as there are any.
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
    }
    if compared == 0 { 0.0 } else { f64::from(flips) / f64::from(compared) }
}

/// Whether a run passed, if it came to an end by itself.
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

    /// Runs, the latest last: what was tested, and `+` or `-`.
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
    fn the_score_is_the_share_of_changes() {
        for (outcomes, expected) in [
            ("", 0.0),
            ("+", 0.0),
            ("++++", 0.0),
            ("----", 0.0),
            ("+-+-+", 1.0),
            ("++--+", 0.5),
            ("+-++", 2.0 / 3.0),
            // What was aborted says nothing.
            ("+a+a-", 0.5),
        ] {
            assert!((of(outcomes) - expected).abs() < 1e-12, "{outcomes}");
        }
    }

    #[test]
    fn a_regression_is_not_flaky() {
        let runs = [("1.0", '+'), ("1.0", '+'), ("2.0", '-'), ("2.0", '-'), ("2.1", '+')];
        assert!(latest_score(&runs) < f64::EPSILON);
        // Versions that are tested in turn are compared with themselves.
        let runs = [("1.0", '+'), ("2.0", '-'), ("1.0", '+'), ("2.0", '-')];
        assert!(latest_score(&runs) < f64::EPSILON);
    }

    #[test]
    fn what_was_long_ago_does_not_count() {
        let long_ago = format!("+-+-{}", "+".repeat(WINDOW));
        assert!(of(&long_ago) < f64::EPSILON);
        assert!(of(&long_ago[..WINDOW]) > 0.0);
    }
}
