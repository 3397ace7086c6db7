//! The verdict of an execution: whether it meets the rules that its test set had when it was requested.

pub mod rules;
pub mod store;
mod trend;

use assay_proto::{
    CustomerId, Fault, Trend,
    execution::{ChangeCounts, RuleOutcome, VerdictState},
};
use sqlx::PgTransaction;

use self::trend::{Standing, trend};
use crate::progress::execution::ExecutionState;

/// The verdict of an execution that has ended, the changes that it depends on, and how it compares with the
/// execution before it.
pub struct Judged {
    pub changes: ChangeCounts,
    pub state: VerdictState,
    pub rules: Vec<RuleOutcome>,
    /// Absent if the execution was canceled, or no test case ran.
    pub trend: Option<Trend>,
}

/// Judges a locked execution that has ended, which is stored with its reports. One statement reads what the
/// verdict and the trend depend on. The verdict of the execution before is the present one: reviews and mutes
/// since its end count.
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
        Standing::of(facts, rules::state(facts.outcomes(&before.gate).as_deref()))
    });
    let trend = read.has_run.then(|| trend(Standing::of(facts, state), before));
    Ok(Judged { changes: read.changes, state, rules: rules.unwrap_or_default(), trend })
}
