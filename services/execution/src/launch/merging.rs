//! Launches of several processes that an agent merges into one when they have finished.

use assay_auth::Caller;
use assay_proto::{
    ExecutionId, Fault, LaunchId, ProjectId,
    execution::{ExecutionInput, Launch},
};
use assay_records::Change;
use assay_runtime::begin;
use tonic::Status;

use super::{Launches, body, store, store::merging};
use crate::{
    execution::{archive, rules::can_cancel, store as executions},
    insight::days,
    progress::report::Ending,
    settle::end_execution,
};

impl Launches {
    /// Merges launches into a new one.
    pub(super) async fn merge(
        &self,
        caller: &Caller,
        project: String,
        body: &[u8],
    ) -> Result<Launch, Status> {
        let (db, customer) = (&self.0.db, caller.customer);
        let (numbers, opening) = body::merging(project, body)?;
        let share = self.0.executions.limits.share(customer).await?;
        let found = store::find_all(db, customer, &[], &numbers).await?;
        if found.is_empty() {
            return Err(Fault::NotFound("launch").into());
        }
        let sources: Vec<LaunchId> = found.iter().map(|(id, _)| *id).collect();
        if sources.contains(&opening.launch) {
            return Err(Fault::invalid("uuid", "must not be that of a merged launch").into());
        }
        // Before an execution is opened in vain.
        merging::require(db, customer, &sources).await?;
        let target = opening.launch;
        let merged = self.start(caller, opening).await?;
        merging::merge(db, customer, &sources, target).await?;
        drop(share);
        self.finish(caller, target, &[]).await?;
        let mut withdrawn = Vec::new();
        for source in sources {
            let found = self.read_with(customer, store::find(db, customer, source)).await?;
            if let Some((project, execution)) = found.and_then(|source| source.execution) {
                self.read_with(customer, self.withdraw(caller, project, execution)).await?;
                withdrawn.push(execution);
            }
        }
        // The launches are merged: the agent must not repeat its request.
        if let Err(fault) = self.read_with(customer, self.leave_out(caller, &withdrawn)).await {
            tracing::warn!(error = %fault, launch.id = %target,
                "cannot take merged launches out of the sums of days; they count twice there");
        }
        Ok(merged)
    }

    /// Takes the results of executions out of the sums of their days.
    async fn leave_out(&self, caller: &Caller, executions: &[ExecutionId]) -> Result<(), Fault> {
        let mut tx = begin(&self.0.db).await?;
        days::leave_out(&mut tx, caller.customer, executions).await?;
        tx.commit().await?;
        Ok(())
    }

    /// Cancels and archives the execution of a launch that was merged. Its results, if they are stored
    /// already, are those of the other execution now.
    async fn withdraw(
        &self,
        caller: &Caller,
        project: ProjectId,
        id: ExecutionId,
    ) -> Result<(), Fault> {
        let customer = caller.customer;
        let mut tx = begin(&self.0.db).await?;
        let mut state = executions::lock(&mut tx, customer, project, id).await?;
        if matches!(can_cancel(&state), Ok(true)) {
            end_execution(&mut tx, customer, &mut state, Ending::Canceled).await?;
        } else {
            merging::expire(&mut tx, customer, id).await?;
        }
        let changes = Some(ExecutionInput { archived: true });
        let change = Change { data_version: None, changes, fields: vec!["Archived".to_owned()] };
        archive::update(&mut tx, customer, project, id, change).await?;
        tx.commit().await?;
        Ok(())
    }
}
