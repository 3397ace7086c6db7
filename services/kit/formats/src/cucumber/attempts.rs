//! Attempts of a scenario that is retried. cucumber-rs writes the steps of all attempts into one scenario and one
//! background, and their hooks into lists: the first `before` hook is that of the first attempt.
//!
//! An attempt has no scenario after a background that failed, and no steps at all after a `before` hook that failed.
//! Its `after` hook always runs.

use super::step::ReportedStep;

/// Divides the hooks and steps of a scenario by attempts, at least one.
pub(super) fn divide(
    before: Vec<ReportedStep>,
    background: Vec<ReportedStep>,
    steps: Vec<ReportedStep>,
    after: Vec<ReportedStep>,
) -> Vec<Vec<ReportedStep>> {
    let (mut before, mut after) = (before.into_iter(), after.into_iter());
    let (mut backgrounds, mut runs) = (runs(background).into_iter(), runs(steps).into_iter());
    let mut attempts = Vec::new();
    loop {
        let is_sound = |steps: &[ReportedStep]| !steps.iter().any(ReportedStep::has_failed);
        let mut attempt: Vec<ReportedStep> = before.next().into_iter().collect();
        if is_sound(&attempt) {
            attempt.extend(backgrounds.next().unwrap_or_default());
        }
        if is_sound(&attempt) {
            attempt.extend(runs.next().unwrap_or_default());
        }
        attempt.extend(after.next());
        if attempt.is_empty() && !attempts.is_empty() {
            return attempts;
        }
        attempts.push(attempt);
    }
}

/// Divides steps where their first one is repeated.
fn runs(steps: Vec<ReportedStep>) -> Vec<Vec<ReportedStep>> {
    let mut runs: Vec<Vec<ReportedStep>> = Vec::new();
    for step in steps {
        match runs.last_mut() {
            Some(run) if !run.first().is_some_and(|first| step.repeats(first)) => run.push(step),
            _ => runs.push(vec![step]),
        }
    }
    runs
}
