//! The executions that the results of a new execution are compared with.

use assay_proto::{CustomerId, ExecutionId, Fault};
use sqlx::{PgExecutor, PgTransaction};
use uuid::Uuid;

use super::store::{self, MOST};
use crate::progress::execution::ExecutionState;

/// Number of executions of its own series that a baseline has at least, if there are as many, however often
/// the default branch runs.
const OWN: usize = 10;

/// Maximum number of executions of a baseline whose results are shown.
const SHOWN: i64 = 10;

/// Returns the executions that those of a new execution are compared with: ended ones of its series, the
/// latest first, and then those of the default branch, the latest first.
pub async fn baseline(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    state: &ExecutionState,
) -> Result<Vec<Uuid>, Fault> {
    let branch = state.execution.branch.as_deref().unwrap_or_default();
    let own = series(tx, customer, state).await?;
    let has_other = !branch.is_empty() && branch != state.default_branch;
    let default = if has_other {
        store::ended(tx, customer, state, &state.default_branch).await?
    } else {
        Vec::new()
    };
    Ok(latest(own, default))
}

/// Returns the ended executions of the series of an execution before it, the latest first. Those that are
/// evidence about the environment are left out.
pub async fn series(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    state: &ExecutionState,
) -> Result<Vec<Uuid>, Fault> {
    let branch = state.execution.branch.as_deref().unwrap_or_default();
    store::ended(tx, customer, state, branch).await
}

/// Returns the executions of a baseline whose results are shown, the latest first: those of one branch, its
/// own one unless it has none, since results of two branches in a row would look like one story.
pub async fn shown(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    state: &ExecutionState,
) -> Result<Vec<Uuid>, Fault> {
    store::of_first_branch(db, customer, &state.baseline, SHOWN).await
}

/// Chooses the baseline of a locked execution again, after its branch has changed and before it has results.
pub async fn rebase(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    state: &mut ExecutionState,
) -> Result<(), Fault> {
    let id = ExecutionId::from_record(&state.execution.id)?;
    state.default_branch = store::default_branch(tx, customer, id).await?;
    state.baseline = baseline(tx, customer, state).await?;
    store::rebase(tx, customer, id, state).await
}

/// Leaves executions out of all later baselines, and out of that of the one into which they are merged, which has no
/// results yet: theirs would be compared with themselves.
pub async fn leave_out(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    merged: ExecutionId,
    executions: &[ExecutionId],
) -> Result<(), Fault> {
    store::leave_out(tx, customer, merged, executions).await
}

/// Leaves out the earliest executions, so that the latest ones of both branches remain.
fn latest(mut own: Vec<Uuid>, mut default: Vec<Uuid>) -> Vec<Uuid> {
    while own.len() + default.len() > MOST {
        let keeps_own = own.len() <= OWN || default.last() < own.last();
        if keeps_own && !default.is_empty() {
            default.pop()
        } else {
            own.pop()
        };
    }
    own.extend(default);
    own
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(numbers: impl Iterator<Item = u128>) -> Vec<Uuid> {
        numbers.map(Uuid::from_u128).collect()
    }

    #[test]
    fn the_latest_executions_of_both_branches_remain() {
        // The branch ran long ago, and the default branch often since.
        let left = latest(ids((1..=30).rev()), ids((100..200).rev()));
        assert_eq!(left.len(), MOST);
        assert_eq!(left[..OWN], ids((21..=30).rev()));
        assert_eq!(left[OWN..], ids((160..200).rev()));

        let even = latest(ids((0..60).map(|nr| 120 - 2 * nr)), ids((0..60).map(|nr| 121 - 2 * nr)));
        assert_eq!((even[0], even[25]), (Uuid::from_u128(120), Uuid::from_u128(121)));
        assert_eq!(latest(ids((0..60).rev()), Vec::new()).len(), MOST);
    }
}
