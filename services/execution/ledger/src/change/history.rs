//! The histories of tests in a baseline.

use std::collections::HashMap;

use assay_judge::{History, Outcome, Rule, Run, Series};
use assay_proto::{TestCaseId, catalog::Gate};

/// The commit of an execution of a baseline, and its branch.
#[derive(Clone, Debug, Default, sqlx::FromRow)]
pub(super) struct Origin {
    pub(super) branch: String,
    pub(super) commit: String,
    /// Its place in the order of all executions of the baseline, the latest first.
    pub(super) age: i64,
}

/// The executions of a baseline, in their order there.
#[derive(Default)]
pub(super) struct Baseline(Vec<(Series, Origin)>);

impl Baseline {
    /// Returns a baseline of an execution of this branch.
    pub(super) fn of(branch: &str, origins: Vec<Origin>) -> Self {
        let series = |origin: &Origin| {
            if origin.branch == branch { Series::Own } else { Series::DefaultBranch }
        };
        Self(origins.into_iter().map(|origin| (series(&origin), origin)).collect())
    }

    /// Applies a rule to the history of a test with these results.
    pub(super) fn with<T>(&self, coded: &[Coded], rule: impl FnOnce(&History<'_>) -> T) -> T {
        let mut runs: Vec<(i64, Run<'_>)> =
            coded.iter().filter_map(|coded| self.run(*coded)).collect();
        // The baseline has the executions of the own series first.
        let own = runs.iter().find(|(_, run)| run.series == Series::Own).or(runs.first());
        let last = own.map(|(_, run)| run.outcome);
        runs.sort_by_key(|(age, _)| *age);
        let runs: Vec<Run<'_>> = runs.into_iter().map(|(_, run)| run).collect();
        rule(&History { runs: &runs, last })
    }

    fn run(&self, coded: Coded) -> Option<(i64, Run<'_>)> {
        let (series, origin) = self.0.get(usize::try_from(coded >> 2).ok()?)?;
        let outcome = match coded & 3 {
            PASSED => Outcome::Passed,
            PASSED_ON_RETRY => Outcome::PassedOnRetry,
            _ => Outcome::Failed,
        };
        Some((origin.age, Run { series: *series, outcome, commit: &origin.commit }))
    }
}

/// Returns the thresholds that a gate sets.
pub fn rule(gate: &Gate) -> Rule {
    let default = Rule::default();
    let or = |field: Option<i32>, default| {
        field.and_then(|field| usize::try_from(field).ok()).unwrap_or(default)
    };
    Rule {
        runs: or(gate.flaky_within_runs, default.runs),
        breaks: or(gate.flaky_after_breaks, default.breaks),
        longest_break: or(gate.longest_flaky_break, default.longest_break),
    }
}

/// The result of a test in an execution of the baseline: four times its index, and the outcome.
pub(super) type Coded = i16;

/// Codes of outcomes.
pub(super) const PASSED: Coded = 0;
pub(super) const PASSED_ON_RETRY: Coded = 1;
pub(super) const FAILED: Coded = 2;

/// The histories of tests, by their test cases.
#[derive(Default)]
pub(super) struct Histories {
    rule: Rule,
    baseline: Baseline,
    results: HashMap<TestCaseId, Vec<Coded>>,
}

impl Histories {
    pub(super) fn new(
        rule: Rule,
        baseline: Baseline,
        results: HashMap<TestCaseId, Vec<Coded>>,
    ) -> Self {
        Self { rule, baseline, results }
    }

    /// Returns the thresholds of the execution.
    pub(super) fn rule(&self) -> Rule {
        self.rule
    }

    /// Applies a rule to the history of a test.
    pub(super) fn with<T>(&self, case: TestCaseId, rule: impl FnOnce(&History<'_>) -> T) -> T {
        let coded = self.results.get(&case).map_or(&[][..], Vec::as_slice);
        self.baseline.with(coded, rule)
    }
}
