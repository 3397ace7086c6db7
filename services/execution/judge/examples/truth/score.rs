//! How often judgements are right.

use assay_judge::{Change, Outcome, Rule, Series};

use super::generator::{Behaviour, Past, Random};

/// Number of results with a change that have it rightly or wrongly, and of those that lack it.
#[derive(Clone, Copy, Default)]
pub(super) struct Score {
    pub(super) right: usize,
    pub(super) wrong: usize,
    pub(super) missed: usize,
}

impl Score {
    fn add(&mut self, is: bool, should: bool) {
        match (is, should) {
            (true, true) => self.right += 1,
            (true, false) => self.wrong += 1,
            (false, true) => self.missed += 1,
            (false, false) => {}
        }
    }
}

#[derive(Default)]
pub(super) struct Scores {
    new: Score,
    flaky: Score,
    fixed: Score,
    newly_failing: Score,
}

impl Scores {
    /// Compares the change of a result with the truth: whether the test was broken in the run before and is
    /// broken in this one.
    pub(super) fn add(
        &mut self,
        behaviour: &Behaviour,
        (was_broken, is_broken): (bool, bool),
        outcome: Outcome,
        change: Change,
    ) {
        let by_chance = !is_broken && outcome != Outcome::Passed;
        self.new.add(change == Change::New, is_broken && !was_broken);
        self.flaky.add(change == Change::Flaky, by_chance);
        self.fixed.add(change == Change::Fixed, was_broken && outcome == Outcome::Passed);
        let newly = matches!(change, Change::New | Change::Still);
        self.newly_failing.add(newly, is_broken && behaviour.flake_rate == 0);
    }

    pub(super) fn named(self) -> [(&'static str, Score); 4] {
        [
            ("New", self.new),
            ("Flaky", self.flaky),
            ("Fixed", self.fixed),
            ("New or Still", self.newly_failing),
        ]
    }
}

/// Returns the percentage of failures of tests with this flake rate that count as new, once 50 runs are known.
#[expect(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
pub(super) fn flakes_called_new(rate: u32, rule: Rule) -> f64 {
    let (mut failures, mut new) = (0_usize, 0_usize);
    let mut random = Random::new(u64::from(rate));
    let behaviour = Behaviour { flake_rate: rate, ..Behaviour::default() };
    for _ in 0..400 {
        let mut past = Past::default();
        for run in 0..170 {
            let outcome = behaviour.outcome(run, &mut random);
            let change = past.judge(Series::DefaultBranch, outcome, rule);
            let is_counted = run >= 50 && outcome == Outcome::Failed;
            failures += usize::from(is_counted);
            new += usize::from(is_counted && change == Change::New);
        }
    }
    100.0 * new as f64 / failures.max(1) as f64
}

/// Returns how many of 400 stable tests that broke once for this number of runs, and were repaired, break
/// again without being called new.
pub(super) fn missed_after_break(length: usize, rule: Rule) -> usize {
    let mut random = Random::new(7);
    let is_missed = |_: &usize| {
        let (first, again) = (5 + random.below(10), 30 + random.below(15));
        let mut past = Past::default();
        let fails = |run: usize| (first..first + length).contains(&run) || run == again;
        let outcome = |run| if fails(run) { Outcome::Failed } else { Outcome::Passed };
        (0..=again)
            .map(|run| past.judge(Series::DefaultBranch, outcome(run), rule))
            .last()
            .is_none_or(|change| change != Change::New)
    };
    (0..400).filter(is_missed).count()
}

/// The runs of test sets, and the gates that were wrong.
#[derive(Default)]
pub(super) struct Gates {
    /// Runs without a regression, and those of which the gate failed.
    pub(super) quiet: usize,
    pub(super) red: usize,
    /// Runs in which a stable test breaks, and those of which the gate passed.
    pub(super) regressions: usize,
    pub(super) green: usize,
}

/// Judges 45 runs of test sets with 96 tests that never fail, 12 that break once and 12 that are flaky. Gates
/// allow no new failure.
pub(super) fn gates(rule: Rule) -> Gates {
    let (mut gates, mut random) = (Gates::default(), Random::new(11));
    for _ in 0..1000 {
        let mut tests: Vec<(Behaviour, Past)> = Vec::new();
        for _ in 0..12 {
            let flake_rate = [10, 20, 30, 40, 50][random.below(5)];
            tests.push((Behaviour { flake_rate, ..Behaviour::default() }, Past::default()));
            let broken = Some((20 + random.below(25), 3));
            tests.push((Behaviour { broken, ..Behaviour::default() }, Past::default()));
        }
        for run in 0..45 {
            let is_regression =
                tests.iter().any(|(test, _)| test.broken.is_some_and(|(first, _)| first == run));
            let is_red = tests.iter_mut().fold(false, |is_red, (test, past)| {
                let outcome = test.outcome(run, &mut random);
                is_red | (past.judge(Series::DefaultBranch, outcome, rule) == Change::New)
            });
            match (run >= 20, is_regression) {
                (false, _) => {}
                (true, true) => {
                    gates.regressions += 1;
                    gates.green += usize::from(!is_red);
                }
                (true, false) => {
                    gates.quiet += 1;
                    gates.red += usize::from(is_red);
                }
            }
        }
    }
    gates
}
