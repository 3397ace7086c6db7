//! Judges the failures of ended executions again, with other thresholds.
//!
//! Only failures are read: a result that passed counts for no verdict, and one that passed on a retry is
//! flaky by every rule. The baselines are those that were stored with the executions, so the answer is what
//! these thresholds would have said then. Executions of one series share most of their baselines, so the
//! results of a test there are read once for all of them.

mod series;
mod store;

use std::collections::HashSet;

use assay_judge::{Outcome, Rule, judge};
use assay_proto::{CustomerId, EnvironmentId, ExecutionId, Fault, ResultChange, TestReportId};
use sqlx::PgPool;
use uuid::Uuid;

use self::{series::AllSeries, store::Failing};
use super::change;

/// Maximum number of failures that are judged at a time. Their histories have about 100 results each, of
/// which PostgreSQL reads a million in two seconds.
pub const SLICE: usize = 5000;

/// An ended execution whose failures are judged again.
#[derive(Clone, Copy)]
pub struct Ended<'e> {
    pub id: ExecutionId,
    pub environment: Option<EnvironmentId>,
    pub branch: &'e str,
    pub commit: &'e str,
    pub baseline: &'e [Uuid],
}

/// Numbers of the failures of an execution.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Failures {
    /// Those that are new or have another cause than before, and are not muted.
    pub new: i32,
    /// Those of flaky tests that are not muted.
    pub flaky: i32,
    /// Those of tests that were flaky when they were judged first, and are not muted.
    pub were_flaky: i32,
}

/// Judges the failures of executions again. Returns their numbers in the order of the executions. Callers
/// pass executions with up to [`SLICE`] failures in total, or a single one.
pub async fn replay(
    db: &PgPool,
    customer: CustomerId,
    executions: &[Ended<'_>],
    rule: Rule,
) -> Result<Vec<Failures>, Fault> {
    let mut replayed = vec![Failures::default(); executions.len()];
    let mut after = None;
    loop {
        let failing = store::failing(db, customer, executions, after).await?;
        let Some(last) = failing.last() else { return Ok(replayed) };
        after = Some((last.execution, last.test_case));
        let is_last = failing.len() < SLICE;
        for (failure, change) in judged(db, customer, executions, &failing, rule).await? {
            replayed[failure.index()?].count(failure, change);
        }
        if is_last {
            return Ok(replayed);
        }
    }
}

impl Failures {
    fn count(&mut self, failure: &Failing, change: ResultChange) {
        let is_new = matches!(change, ResultChange::New | ResultChange::CauseChanged);
        self.new += i32::from(is_new && !failure.is_muted);
        self.flaky += i32::from(change == ResultChange::Flaky && !failure.is_muted);
        self.were_flaky += i32::from(failure.change() == ResultChange::Flaky && !failure.is_muted);
    }
}

/// Returns failures with their changes.
async fn judged<'f>(
    db: &PgPool,
    customer: CustomerId,
    executions: &[Ended<'_>],
    failing: &'f [Failing],
    rule: Rule,
) -> Result<Vec<(&'f Failing, ResultChange)>, Fault> {
    let series = AllSeries::read(db, customer, executions, failing).await?;
    let mut judged = Vec::with_capacity(failing.len());
    for failure in failing {
        let execution = failure.index()?;
        let commit = executions[execution].commit;
        let judgement = series.with(execution, failure.test_case, |history| {
            judge(Outcome::Failed, commit, failure.has_same_cause(), history, rule)
        });
        judged.push((failure, change(judgement.change)));
    }
    let other = with_other_causes(db, customer, &judged).await?;
    for (failure, change) in &mut judged {
        if *change == ResultChange::Still && other.contains(&failure.id) {
            *change = ResultChange::CauseChanged;
        }
    }
    Ok(judged)
}

impl Failing {
    /// Whether it has the cause of the failure before, as far as that was recorded.
    fn has_same_cause(&self) -> bool {
        self.change() != ResultChange::CauseChanged
    }
}

/// Returns those of the failures that have another cause than before. Nothing records that of a test that
/// was flaky, so the causes are compared as long as they are stored.
async fn with_other_causes(
    db: &PgPool,
    customer: CustomerId,
    judged: &[(&Failing, ResultChange)],
) -> Result<HashSet<TestReportId>, Fault> {
    let unrecorded = judged.iter().filter(|(failure, change)| {
        *change == ResultChange::Still && failure.change() == ResultChange::Flaky
    });
    let unrecorded: Vec<TestReportId> = unrecorded.map(|(failure, _)| failure.id).collect();
    store::with_other_causes(db, customer, &unrecorded).await
}
