//! Ended executions with what their verdicts depend on.

use std::collections::HashSet;

use assay_ledger::{
    change::{
        replay::{Ended, Failures},
        rule,
    },
    progress::execution::Unreached,
    verdict::rules::Facts,
};
use assay_proto::{
    EnumColumn, EnvironmentId, ExecutionId, ExecutionStatistic, ExecutionStatus,
    catalog::Gate,
    execution::{BacktestDifference, ChangeCounts, RuleOutcome},
};
use sqlx::{FromRow, types::Json};
use uuid::Uuid;

/// An ended execution as it is stored.
#[derive(FromRow)]
pub(super) struct Stored {
    #[sqlx(flatten)]
    pub(super) difference: BacktestDifference,
    #[sqlx(flatten)]
    statistic: ExecutionStatistic,
    #[sqlx(flatten)]
    changes: ChangeCounts,
    pub(super) id: ExecutionId,
    #[sqlx(try_from = "EnumColumn<ExecutionStatus>")]
    status: i32,
    pub(super) gate: Json<Gate>,
    new_failures: i32,
    /// The test cases without a result, of those that its gate or the replayed one requires.
    not_executed: Vec<String>,
    #[sqlx(flatten)]
    unreached: Unreached,
    environment_id: Option<EnvironmentId>,
    commit: Option<String>,
    baseline: Vec<Uuid>,
}

/// Numbers of failures by their changes.
#[derive(Clone, Copy)]
pub(super) struct Counts {
    changes: ChangeCounts,
    new_failures: i32,
}

impl Stored {
    /// Returns the number of test cases that failed.
    pub(super) fn failures(&self) -> usize {
        let failures = self.statistic.test_cases_failed + self.statistic.test_cases_with_error;
        usize::try_from(failures).unwrap_or_default()
    }

    /// Whether its failures have to be judged again for a gate.
    pub(super) fn is_judged_again(&self, gate: &Gate) -> bool {
        rule(gate) != rule(&self.gate)
            && self.failures() > 0
            && self.facts(&self.counts(), &[]).depends_on_gate()
    }

    pub(super) fn ended(&self) -> Ended<'_> {
        Ended {
            id: self.id,
            environment: self.environment_id,
            branch: self.difference.branch.as_deref().unwrap_or_default(),
            commit: self.commit.as_deref().unwrap_or_default(),
            baseline: &self.baseline,
        }
    }

    /// Returns the numbers that are stored.
    pub(super) fn counts(&self) -> Counts {
        Counts { changes: self.changes, new_failures: self.new_failures }
    }

    /// Returns the numbers after its failures were judged again. Whether a failure is muted, or a test
    /// passed on a retry, does not depend on the thresholds.
    pub(super) fn counts_with(&self, failures: Failures) -> Counts {
        let flaky = self.changes.flaky - failures.were_flaky + failures.flaky;
        let changes = ChangeCounts { flaky, ..self.changes };
        Counts { changes, new_failures: failures.new }
    }

    /// Returns the outcomes of the rules of a gate.
    pub(super) fn outcomes(&self, counts: &Counts, gate: &Gate) -> Vec<RuleOutcome> {
        let missing: HashSet<&String> = self.not_executed.iter().collect();
        let required = gate.required_test_cases.iter();
        let missing: Vec<String> =
            required.filter(|case| missing.contains(case)).cloned().collect();
        self.facts(counts, &missing).outcomes(gate).unwrap_or_default()
    }

    fn facts<'f>(&'f self, counts: &'f Counts, not_executed: &'f [String]) -> Facts<'f> {
        Facts {
            status: ExecutionStatus::try_from(self.status).unwrap_or_default(),
            statistic: &self.statistic,
            changes: &counts.changes,
            new_failures: counts.new_failures,
            not_executed,
            unreached: self.unreached,
        }
    }
}
