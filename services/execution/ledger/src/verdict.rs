//! The verdict of an execution: whether it meets the rules that its test set had when it was requested.

pub mod rules;
pub mod store;
mod trend;

use assay_proto::{
    CustomerId, Fault, Trend,
    events::OwnerTrend,
    execution::{ChangeCounts, RuleOutcome, VerdictState},
};
use sqlx::PgTransaction;

use self::trend::{Standing, trend, trend_of_owner};
use crate::progress::execution::ExecutionState;

/// The verdict of an execution that has ended, the changes that it depends on, and how it compares with the
/// execution before it.
pub struct Judged {
    pub changes: ChangeCounts,
    pub state: VerdictState,
    pub rules: Vec<RuleOutcome>,
    /// Absent if the execution was canceled, or no test case ran.
    pub trend: Option<Trend>,
    /// The owners of the test cases that fail and are not muted, or are fixed.
    pub owners: Vec<String>,
    /// How the tests of each of these owners compare, if there is a trend.
    pub owner_trends: Vec<OwnerTrend>,
}

/// Judges a locked execution that has ended, which is stored with its reports. One statement reads what the
/// verdict and the trend depend on, and another one the owners, if a test case fails or is fixed. The verdict of
/// the execution before is the present one: reviews and mutes since its end count.
pub async fn judge(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    state: &ExecutionState,
) -> Result<Judged, Fault> {
    let (read, before) = store::read(&mut **tx, customer, &state.execution).await?;
    let facts = read.facts();
    let rules = facts.outcomes(&read.gate);
    let state = rules::state(rules.as_deref());
    // The one before has run.
    let before = before.map(|before| {
        let facts = before.facts();
        let state = rules::state(facts.outcomes(&before.gate).as_deref());
        (before.id, Standing::of(facts, state))
    });
    let standing = Standing::of(facts, state);
    let trend = read.has_run.then(|| trend(standing, before.map(|(_, standing)| standing)));
    let tests = if standing.has_failures() || read.changes.fixed > 0 {
        let failed_before = before.filter(|(_, standing)| standing.has_failures());
        store::owners(&mut **tx, customer, read.id, failed_before.map(|(id, _)| id)).await?
    } else {
        Vec::new()
    };
    let is_outage = facts.environment().is_some();
    let compared = tests.iter().filter(|_| trend.is_some()).map(|tests| OwnerTrend {
        owner: tests.owner.clone(),
        trend: trend_of_owner(tests, is_outage, before.is_none()).into(),
    });
    Ok(Judged {
        owner_trends: compared.collect(),
        owners: tests.into_iter().map(|tests| tests.owner).collect(),
        changes: read.changes,
        state,
        rules: rules.unwrap_or_default(),
        trend,
    })
}
