//! Attempts of a scenario that is retried. cucumber-rs writes the steps of all attempts into one scenario and one
//! background, and their hooks into lists: the first `before` hook is that of the first attempt.
//!
//! An attempt has no scenario after a background that failed, and no steps at all after a `before` hook that failed.
//! Its `after` hook always runs. Only a scenario that failed is retried, and the last attempt has steps unless its hook
//! failed.

use super::step::ReportedStep;

/// Divides the hooks and steps of a scenario by attempts, at least one. If they do not look like retries, they are one
/// attempt, so that no failure is taken for an earlier attempt.
pub(super) fn divide(
    before: Vec<ReportedStep>,
    background: Vec<ReportedStep>,
    steps: Vec<ReportedStep>,
    after: Vec<ReportedStep>,
) -> Vec<Vec<ReportedStep>> {
    let (mut before, mut after) = (before.into_iter(), after.into_iter());
    let (mut backgrounds, mut runs) = (runs(background).into_iter(), runs(steps).into_iter());
    let mut attempts = Vec::new();
    let is_sound = |steps: &[ReportedStep]| !steps.iter().any(ReportedStep::has_failed);
    let mut has_run = true;
    loop {
        let mut attempt: Vec<ReportedStep> = before.next().into_iter().collect();
        let hooks = attempt.len();
        if is_sound(&attempt) {
            attempt.extend(backgrounds.next().unwrap_or_default());
        }
        if is_sound(&attempt) {
            attempt.extend(runs.next().unwrap_or_default());
        }
        let is_run = attempt.len() > hooks || !is_sound(&attempt);
        attempt.extend(after.next());
        if attempt.is_empty() && !attempts.is_empty() {
            break;
        }
        has_run = is_run;
        attempts.push(attempt);
    }
    if !has_run || attempts.iter().rev().skip(1).any(|retried| is_sound(retried)) {
        return vec![attempts.into_iter().flatten().collect()];
    }
    attempts
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
