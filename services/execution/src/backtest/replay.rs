//! Replays a gate over ended executions, the latest first.
//!
//! A gate that only has other limits is decided by what is stored. If it has other thresholds of flakiness
//! than an execution had, the failures of the execution are judged again, unless its verdict is the same
//! whatever a gate says.

use std::time::{Duration, Instant};

use assay_fair::Shares;
use assay_ledger::change::{self, replay};
use assay_proto::{
    CustomerId, Fault, TestSetId,
    catalog::Gate,
    execution::{Backtest, BacktestDifference, VerdictState},
};
use sqlx::PgPool;

use super::{
    rules::Selected,
    store::{self, SLICE},
    verdict::{Counts, Stored},
};
use assay_ledger::verdict::rules::state;

/// Time after which no further executions are replayed. A call has 15 seconds.
const TIME: Duration = Duration::from_secs(8);

/// Maximum number of executions with another verdict that are listed.
const LISTED: usize = 100;

/// A gate, and the test set over whose executions it is replayed.
pub(super) struct Replay<'r> {
    pub(super) db: &'r PgPool,
    /// Shares of the database, one of which each statement takes.
    pub(super) database: &'r Shares,
    pub(super) customer: CustomerId,
    pub(super) set: TestSetId,
    pub(super) gate: &'r Gate,
}

impl Replay<'_> {
    /// Replays the gate over the selected executions, as far as the time allows.
    pub(super) async fn over(&self, mut selected: Selected) -> Result<Backtest, Fault> {
        let begun = Instant::now();
        let mut backtest = Backtest::default();
        loop {
            let slice = self.read(&selected).await?;
            let mut left = slice.len();
            for part in parts(&slice, self.gate) {
                for (execution, counts) in part.iter().zip(self.judged(part).await?) {
                    add(&mut backtest, execution, &counts, self.gate);
                }
                left -= part.len();
                selected.before = part.last().map(|last| last.id.0);
                if (left > 0 || slice.len() == SLICE) && begun.elapsed() > TIME {
                    backtest.next_cursor = selected.before.map(|last| last.to_string());
                    return Ok(backtest);
                }
            }
            if slice.len() < SLICE {
                return Ok(backtest);
            }
        }
    }

    async fn read(&self, selected: &Selected) -> Result<Vec<Stored>, Fault> {
        let _share = self.database.acquire(self.customer).await?;
        store::ended(self.db, self.customer, self.set, selected, self.gate).await
    }

    /// Returns the numbers that the verdicts of executions depend on.
    async fn judged(&self, part: &[Stored]) -> Result<Vec<Counts>, Fault> {
        let again = |execution: &&Stored| execution.is_judged_again(self.gate);
        let sought: Vec<_> = part.iter().filter(again).map(Stored::ended).collect();
        let rule = change::rule(self.gate);
        let judged = if sought.is_empty() {
            Vec::new()
        } else {
            let _share = self.database.acquire(self.customer).await?;
            replay::replay(self.db, self.customer, &sought, rule).await?
        };
        let mut judged = judged.into_iter();
        let counts = |execution: &Stored| {
            let failures = Some(execution).filter(again).and_then(|_| judged.next());
            failures.map_or(execution.counts(), |failures| execution.counts_with(failures))
        };
        Ok(part.iter().map(counts).collect())
    }
}

/// Divides executions into parts whose failures are judged at once.
fn parts<'s>(executions: &'s [Stored], gate: &Gate) -> impl Iterator<Item = &'s [Stored]> {
    let cost = move |execution: &Stored| {
        if execution.is_judged_again(gate) { execution.failures() } else { 0 }
    };
    let mut sum = executions.first().map_or(0, cost);
    executions.chunk_by(move |_, next| {
        sum += cost(next);
        let fits = sum <= replay::SLICE;
        if !fits {
            sum = cost(next);
        }
        fits
    })
}

/// Counts an execution, and lists it if the gate changes its verdict.
fn add(backtest: &mut Backtest, execution: &Stored, counts: &Counts, gate: &Gate) {
    let stored = execution.outcomes(&execution.counts(), &execution.gate);
    let replayed = execution.outcomes(counts, gate);
    let (verdict, by_gate) = (state(Some(&stored)), state(Some(&replayed)));
    backtest.executions += 1;
    let passes = by_gate == VerdictState::Passed;
    backtest.passed += i32::from(passes);
    backtest.failed += i32::from(!passes);
    if verdict == by_gate {
        return;
    }
    backtest.let_through += i32::from(passes);
    backtest.blocked += i32::from(!passes);
    if backtest.differences.len() < LISTED {
        let decisive = if passes { stored } else { replayed };
        backtest.differences.push(BacktestDifference {
            verdict: verdict.into(),
            replayed: by_gate.into(),
            rules: decisive.into_iter().filter(|rule| !rule.is_met).collect(),
            ..execution.difference.clone()
        });
    }
}
