//! Tests that behave in known ways.

use std::collections::VecDeque;

use assay_judge::{Change, History, Outcome, Rule, Run, Series, judge};

use super::score::{Score, Scores};

/// Numbers that look random and are the same in every run (`SplitMix64`).
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number below `end`.
    pub(super) fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % end as u64).unwrap_or_default()
    }

    /// Returns true this often.
    pub(super) fn percent(&mut self, percent: u32) -> bool {
        self.next() % 100 < u64::from(percent)
    }
}

/// How a test behaves.
#[derive(Clone, Copy, Default)]
pub(super) struct Behaviour {
    /// Percentage of runs that fail by chance.
    pub(super) flake_rate: u32,
    /// Whether failures by chance are retried once.
    pub(super) is_retried: bool,
    /// The runs in which it is really broken, the first and the number of them.
    pub(super) broken: Option<(usize, usize)>,
    /// Percentage of executions that leave it out, as shards and selections do.
    pub(super) left_out: u32,
}

impl Behaviour {
    pub(super) fn is_broken(&self, run: usize) -> bool {
        self.broken.is_some_and(|(first, runs)| (first..first + runs).contains(&run))
    }

    /// Returns the result of a run.
    pub(super) fn outcome(&self, run: usize, random: &mut Random) -> Outcome {
        if self.is_broken(run) {
            return Outcome::Failed;
        }
        match (random.percent(self.flake_rate), self.is_retried) {
            (false, _) => Outcome::Passed,
            (true, true) if !random.percent(self.flake_rate) => Outcome::PassedOnRetry,
            (true, _) => Outcome::Failed,
        }
    }
}

/// The results of one test so far, the latest first.
#[derive(Default)]
pub(super) struct Past(VecDeque<(Series, Outcome)>);

impl Past {
    /// Judges a result of a series and remembers it.
    pub(super) fn judge(&mut self, series: Series, outcome: Outcome, rule: Rule) -> Change {
        let change = self.change(series, outcome, rule);
        self.0.push_front((series, outcome));
        self.0.truncate(rule.runs);
        change
    }

    fn change(&self, series: Series, outcome: Outcome, rule: Rule) -> Change {
        // A branch sees its own runs and those of the default branch, which is the own one there.
        let is_default = series == Series::DefaultBranch;
        let visible = |(of, outcome): &(Series, Outcome)| {
            let series = if is_default { Series::Own } else { *of };
            (!is_default || *of == Series::DefaultBranch).then_some(Run {
                series,
                outcome: *outcome,
                commit: "",
            })
        };
        let runs: Vec<Run<'_>> = self.0.iter().filter_map(visible).collect();
        let own = runs.iter().find(|run| run.series == Series::Own).or(runs.first());
        let last = own.map(|run| run.outcome);
        judge(outcome, "", true, &History { runs: &runs, last }, rule).change
    }
}

/// Many tests of all kinds in one test set.
pub(super) struct Population {
    pub(super) tests: usize,
    pub(super) runs: usize,
}

/// Percentage of runs in which nearly everything fails because of the environment.
const OUTAGES: u32 = 2;

/// Percentage of runs that are on a branch.
const BRANCH_RUNS: u32 = 30;

impl Population {
    /// Judges all results, and compares the changes with the truth.
    pub(super) fn judged(&self, rule: Rule, random: &mut Random) -> [(&'static str, Score); 4] {
        let executions: Vec<(Series, bool)> = (0..self.runs)
            .map(|_| {
                let is_branch = random.percent(BRANCH_RUNS);
                let series = if is_branch { Series::Own } else { Series::DefaultBranch };
                (series, random.percent(OUTAGES))
            })
            .collect();
        let mut scores = Scores::default();
        for _ in 0..self.tests {
            let behaviour = self.behaviour(random);
            let mut past = Past::default();
            let mut was_broken = false;
            for (run, (series, is_outage)) in executions.iter().enumerate() {
                // An outage is left out of all histories, and judged as a whole.
                if *is_outage || random.percent(behaviour.left_out) {
                    continue;
                }
                let outcome = behaviour.outcome(run, random);
                let change = past.judge(*series, outcome, rule);
                // Branches do not decide what is newly failing or fixed for the default branch.
                if *series == Series::DefaultBranch {
                    let is_broken = behaviour.is_broken(run);
                    scores.add(&behaviour, (was_broken, is_broken), outcome, change);
                    was_broken = is_broken;
                }
            }
        }
        scores.named()
    }

    /// Most tests are stable, a tenth is flaky, and a tenth breaks for a while.
    fn behaviour(&self, random: &mut Random) -> Behaviour {
        let mut behaviour = Behaviour { left_out: 5, ..Behaviour::default() };
        match random.below(100) {
            0..10 => {
                behaviour.flake_rate = super::RATES[random.below(super::RATES.len())];
                behaviour.is_retried = random.percent(50);
            }
            10..20 => {
                behaviour.broken = Some((20 + random.below(self.runs - 20), 1 + random.below(30)));
            }
            _ => {}
        }
        behaviour
    }
}
