//! Changes of launches that have started: their attributes and their description.

use assay_database::begin;
use assay_events::ExecutionAction;
use assay_ledger::{change, execution::store as executions, settle::events::announce};
use assay_proto::{CustomerId, Fault, LaunchId};

use super::{
    Launches, OfProject,
    body::{self, Changes},
    store,
};

impl Launches {
    /// Changes the tags of the execution of a launch, its origin unless it has ended, and the
    /// description.
    pub(super) async fn change(
        &self,
        customer: CustomerId,
        id: LaunchId,
        (project, execution): OfProject,
        body: &[u8],
    ) -> Result<(), Fault> {
        let Changes { description, tags, .. } = body::changes(body, "")?;
        if description.is_none() && tags.is_none() {
            return Ok(());
        }
        let mut tx = begin(&self.0.db).await?;
        let mut state = executions::lock(&mut tx, customer, project, execution).await?;
        let Changes { description, tags, branch, commit, build } =
            body::changes(body, &state.execution.tags)?;
        if let Some(description) = description {
            store::describe(&mut *tx, customer, id, &description).await?;
        }
        if let Some(tags) = tags {
            let (has_ended, before) = (state.has_ended(), state.execution.branch.clone());
            let changed = &mut state.execution;
            state.statistic.tags.clone_from(&tags);
            changed.tags = tags;
            if !has_ended {
                changed.branch = branch.or(changed.branch.take());
                changed.commit = commit.or(changed.commit.take());
                changed.build = build.or(changed.build.take());
            }
            executions::relabel(&mut tx, customer, &mut state).await?;
            let has_no_results =
                state.statistic.test_cases_pending == state.statistic.test_cases_total;
            if state.execution.branch != before && has_no_results {
                change::rebase(&mut tx, customer, &mut state).await?;
            }
            if !has_ended {
                announce(&mut tx, customer, &state, ExecutionAction::Progressed, &[]).await?;
            }
        }
        Ok(tx.commit().await?)
    }
}
