//! Monitors: whether the runs of a test reach a threshold, and whether it has recovered.
//!
//! A monitor acts on tests that are flaky, never on those that are broken: a test that has begun to fail is a
//! regression until it has recovered from failures or passed on a retry, and one that fails for longer than a
//! short break is broken, flaky or not. A test that a monitor has found to be repaired begins again: runs
//! before that do not count.

use crate::{
    History, Outcome, Rule, Run, Series, history::breaks, sentence::number, slowdown::median,
};

/// Number of runs below which a share of them says nothing.
const FEWEST: usize = 5;

/// The property of a test that a monitor measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// Number of runs that passed only on a retry.
    PassOnRetry,
    /// Number of short breaks from which it recovered.
    Recoveries,
    /// Share of runs that failed, in percent.
    FailureRate,
    /// Median of the durations of runs that passed, in seconds.
    Duration,
}

/// The thresholds of a monitor.
#[derive(Clone, Copy, Debug)]
pub struct Monitor {
    pub measure: Measure,
    /// Number of the last runs that are measured.
    pub runs: usize,
    /// Value from which on a test is over it.
    pub threshold: f64,
    /// Number of runs in a row that pass without a retry, after which a test has recovered.
    pub recover_after: usize,
}

/// A run of a test, with its duration in seconds.
#[derive(Clone, Copy, Debug)]
pub struct Observation<'r> {
    pub outcome: Outcome,
    /// The commit, empty if it is unknown.
    pub commit: &'r str,
    pub duration_in_sec: f64,
}

/// The state of a test for a monitor, with the sentence that explains it. The subject of the sentence is the
/// test.
#[derive(Clone, Debug, PartialEq)]
pub enum Finding {
    /// It reaches the threshold, and is not broken.
    Over(String),
    /// It has passed often enough.
    Recovered(String),
    /// It fails for longer than a short break, flaky or not.
    Broken(String),
    None,
}

/// Judges a test by its runs on one branch, the latest first.
pub fn observe(monitor: &Monitor, runs: &[Observation<'_>], rule: Rule) -> Finding {
    let Some((latest, earlier)) = runs.split_first() else { return Finding::None };
    let all: Vec<Run<'_>> = runs.iter().map(run).collect();
    let last = earlier.first().map(|run| run.outcome);
    let history = History { runs: &all[1..], last };
    let evidence = history.evidence(latest.outcome, latest.commit, rule);
    if evidence.is_broken(rule) {
        let fails = number(evidence.in_a_row, "run");
        return Finding::Broken(format!("failed in its last {fails}, so it is broken"));
    }
    if has_recovered(monitor, runs) {
        let passed = number(monitor.recover_after, "run");
        return Finding::Recovered(format!("passed in its last {passed} without a retry"));
    }
    let is_flaky = evidence.is_flaky(rule) || latest.outcome == Outcome::PassedOnRetry;
    let is_judged = is_flaky || monitor.measure == Measure::Duration;
    let measured = &runs[..runs.len().min(monitor.runs)];
    match value(monitor.measure, measured, rule) {
        Some(value) if is_judged && value >= monitor.threshold => {
            Finding::Over(sentence(monitor.measure, value, measured.len()))
        }
        _ => Finding::None,
    }
}

fn run<'r>(observation: &Observation<'r>) -> Run<'r> {
    let Observation { outcome, commit, .. } = *observation;
    Run { series: Series::Own, outcome, commit }
}

fn has_recovered(monitor: &Monitor, runs: &[Observation<'_>]) -> bool {
    let is_fine = |run: &&Observation<'_>| {
        let is_slow =
            monitor.measure == Measure::Duration && run.duration_in_sec >= monitor.threshold;
        run.outcome == Outcome::Passed && !is_slow
    };
    runs.iter().take(monitor.recover_after).filter(is_fine).count() >= monitor.recover_after
}

/// Returns the value of a measure, if there are enough runs for it.
fn value(measure: Measure, runs: &[Observation<'_>], rule: Rule) -> Option<f64> {
    let count = |outcome| runs.iter().filter(|run| run.outcome == outcome).count();
    let float = |count: usize| u32::try_from(count).map_or(f64::MAX, f64::from);
    match measure {
        Measure::PassOnRetry => Some(float(count(Outcome::PassedOnRetry))),
        Measure::Recoveries => {
            let runs: Vec<Run<'_>> = runs.iter().map(run).collect();
            Some(float(breaks(runs.iter(), rule)))
        }
        Measure::FailureRate => (runs.len() >= FEWEST)
            .then(|| 100.0 * float(count(Outcome::Failed)) / float(runs.len())),
        Measure::Duration => median_of_passed(runs),
    }
}

/// Returns the median of the durations of runs that passed. A run that did not is neither slow nor fast.
fn median_of_passed(runs: &[Observation<'_>]) -> Option<f64> {
    let passed = runs.iter().filter(|run| run.outcome != Outcome::Failed);
    let durations: Vec<f64> = passed.map(|run| run.duration_in_sec).collect();
    median(&durations).filter(|_| durations.len() >= FEWEST)
}

fn sentence(measure: Measure, value: f64, count: usize) -> String {
    let runs = number(count, "run");
    match measure {
        Measure::PassOnRetry => format!("passed only on a retry in {value} of its last {runs}"),
        Measure::Recoveries => format!("recovered {value} times in its last {runs}"),
        Measure::FailureRate => format!("failed in {value:.0} % of its last {runs}, and recovered"),
        Measure::Duration => format!("took {value:.1} s in the median of its last {runs}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(letters: &str, duration_in_sec: f64) -> Vec<Observation<'static>> {
        let run = |letter| Observation {
            outcome: match letter {
                'F' => Outcome::Failed,
                'R' => Outcome::PassedOnRetry,
                _ => Outcome::Passed,
            },
            commit: "",
            duration_in_sec,
        };
        letters.chars().map(run).collect()
    }

    fn monitor(measure: Measure, threshold: f64) -> Monitor {
        Monitor { measure, runs: 10, threshold, recover_after: 4 }
    }

    fn found(measure: Measure, threshold: f64, letters: &str) -> Finding {
        observe(&monitor(measure, threshold), &runs(letters, 1.0), Rule::default())
    }

    fn is_over(measure: Measure, threshold: f64, letters: &str) -> bool {
        matches!(found(measure, threshold, letters), Finding::Over(_))
    }

    #[test]
    fn each_measure_has_its_threshold() {
        use Measure::{FailureRate, PassOnRetry, Recoveries};
        for (measure, threshold, letters, expected) in [
            (PassOnRetry, 2.0, "RPPR", true),
            (PassOnRetry, 2.0, "RPPP", false),
            (Recoveries, 2.0, "FPFPFP", true),
            (Recoveries, 3.0, "FPFPFP", false),
            (FailureRate, 30.0, "FPFPFPPP", true),
            (FailureRate, 40.0, "FPFPFPPP", false),
            // Runs before the last ten are not measured.
            (PassOnRetry, 2.0, "RPPPFPPPPPRRR", false),
        ] {
            assert_eq!(is_over(measure, threshold, letters), expected, "{measure:?} {letters}");
        }
    }

    #[test]
    fn a_regression_of_a_stable_test_is_not_over_any_threshold() {
        for letters in ["F", "FPPPPPPPPP", "FFPPPPPPPP", "FPFPPPPPPP", "FFFFFPPPPP", "FPFFFFFFPP"] {
            for measure in [Measure::PassOnRetry, Measure::Recoveries, Measure::FailureRate] {
                assert!(!is_over(measure, 1.0, letters), "{measure:?} {letters}");
            }
        }
    }

    #[test]
    fn a_flaky_test_that_stays_failing_is_broken() {
        assert!(is_over(Measure::FailureRate, 20.0, "FFPFPFPPPP"));
        let broken = Finding::Broken("failed in its last 3 runs, so it is broken".to_owned());
        assert_eq!(found(Measure::FailureRate, 20.0, "FFFPFPFPPP"), broken);
    }

    #[test]
    fn a_test_recovers_after_runs_in_a_row_without_a_retry() {
        let recovered = Finding::Recovered("passed in its last 4 runs without a retry".to_owned());
        assert_eq!(found(Measure::Recoveries, 2.0, "PPPPFPFPFP"), recovered);
        for letters in ["PPPFPFPFP", "PPPRPFPFPFP"] {
            assert!(!matches!(found(Measure::Recoveries, 9.0, letters), Finding::Recovered(_)));
        }
    }

    #[test]
    fn a_slow_test_is_over_by_its_median_and_recovers_when_it_is_fast() {
        let slow = monitor(Measure::Duration, 5.0);
        let observed = |runs: &[Observation<'_>]| observe(&slow, runs, Rule::default());
        let over = Finding::Over("took 6.0 s in the median of its last 5 runs".to_owned());
        assert_eq!(observed(&runs("PPPPP", 6.0)), over);
        assert_eq!(observed(&runs("PPPP", 6.0)), Finding::None, "too few");
        assert_eq!(observed(&runs("FPFPFPPP", 1.0)), Finding::None, "failures are not slow");
        let fast = [runs("PPPP", 1.0), runs("PPPPP", 6.0)].concat();
        assert!(matches!(observed(&fast), Finding::Recovered(_)));
    }

    /// Compares with a model that goes through all sequences of up to nine runs.
    #[test]
    fn no_sequence_of_runs_has_another_finding_than_the_model() {
        let letters = ['P', 'R', 'F'];
        for length in 1..=9 {
            for code in 0..3_usize.pow(length) {
                let sequence: String =
                    (0..length).map(|place| letters[code / 3_usize.pow(place) % 3]).collect();
                let finding = found(Measure::FailureRate, 30.0, &sequence);
                assert_eq!(kind(&finding), model(&sequence), "{sequence}");
            }
        }
    }

    fn kind(finding: &Finding) -> &'static str {
        match finding {
            Finding::Over(_) => "over",
            Finding::Recovered(_) => "recovered",
            Finding::Broken(_) => "broken",
            Finding::None => "none",
        }
    }

    /// The rules for a failure rate of 30 % and four passes, written with texts.
    fn model(sequence: &str) -> &'static str {
        if sequence.starts_with("FFF") {
            return "broken";
        }
        if sequence.starts_with("PPPP") {
            return "recovered";
        }
        // A break begins after a pass, is short, and a pass ends it; the run of now is not among them.
        let earlier = sequence[1..].replace('R', "P");
        let ended = earlier.trim_start_matches('F').trim_end_matches('F');
        let short = ended.split('P').filter(|part| (1..=2).contains(&part.len())).count();
        let is_flaky = sequence.contains('R') || short >= 2;
        let failures = sequence.matches('F').count();
        let is_over = sequence.len() >= 5 && 100 * failures >= 30 * sequence.len();
        if is_flaky && is_over { "over" } else { "none" }
    }
}
