//! The verdict of an execution: whether it meets the rules that its test set had when it was requested.

pub mod rules;
pub mod store;

use assay_proto::{
    CustomerId, ExecutionId, Fault,
    execution::{ChangeCounts, RuleOutcome, VerdictState},
};
use sqlx::PgTransaction;

use self::rules::Facts;
use crate::progress::execution::ExecutionState;

/// The verdict of an execution that has ended, and the changes that it depends on.
pub struct Judged {
    pub changes: ChangeCounts,
    pub state: VerdictState,
    pub rules: Vec<RuleOutcome>,
}

/// Judges a locked execution that has ended, whose reports are stored. One statement reads what the verdict
/// depends on.
pub async fn judge(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    state: &ExecutionState,
) -> Result<Judged, Fault> {
    let id = ExecutionId::from_record(&state.execution.id)?;
    let read = store::read(&mut **tx, customer, id).await?;
    let facts = Facts {
        status: state.execution.status(),
        statistic: &state.statistic,
        changes: &read.changes,
        new_failures: read.new_failures,
        not_executed: &read.not_executed,
    };
    let rules = facts.outcomes(&read.gate);
    let state = rules::state(rules.as_deref());
    Ok(Judged { changes: read.changes, state, rules: rules.unwrap_or_default() })
}
