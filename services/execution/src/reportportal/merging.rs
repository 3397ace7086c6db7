//! Launches of several processes that an agent merges into one when they have finished.

use assay_auth::Caller;
use assay_database::begin;
use assay_ledger::{
    change,
    execution::{rules::can_cancel, store as executions},
    progress::report::Ending,
    settle::end_execution,
};
use assay_proto::{
    CustomerId, ExecutionId, Fault, LaunchId, ProjectId,
    execution::{ExecutionInput, Launch},
};
use assay_records::Change;
use sqlx::PgTransaction;
use tonic::Status;

use super::{Launches, body, store, store::merging};
use crate::{execution::archive, execution_time, insight::days};

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
        drop(share);
        self.read_with(customer, self.merge_into(caller, target, &found)).await?;
        self.0.callers.remember(caller, target);
        self.adopt_soon(caller, target).await;
        Ok(merged)
    }

    /// Moves the requests of launches to another one and withdraws their executions, all or none: the
    /// agent may repeat its request until then, and must not afterwards.
    async fn merge_into(
        &self,
        caller: &Caller,
        target: LaunchId,
        found: &[(LaunchId, ExecutionId)],
    ) -> Result<(), Fault> {
        let customer = caller.customer;
        let (sources, executions): (Vec<LaunchId>, Vec<ExecutionId>) =
            found.iter().copied().unzip();
        let mut tx = begin(&self.0.db).await?;
        for execution in &executions {
            withdraw(&mut tx, customer, *execution).await?;
        }
        // Changes of a launch lock its execution first, too.
        let merged = store::find(&mut *tx, customer, target).await?;
        if let Some((_, merged)) = merged.and_then(|launch| launch.execution) {
            change::leave_out(&mut tx, customer, merged, &executions).await?;
        }
        merging::merge(&mut tx, customer, &sources, target).await?;
        store::finish(&mut *tx, customer, target).await?;
        days::leave_out(&mut tx, customer, &executions).await?;
        execution_time::store::leave_out(&mut tx, customer, &executions).await?;
        Ok(tx.commit().await?)
    }
}

/// Cancels and archives the execution of a launch that is merged. Its results, if they are stored
/// already, are those of the other execution now.
async fn withdraw(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    id: ExecutionId,
) -> Result<(), Fault> {
    let mut state = executions::lock(tx, customer, None, id).await?;
    let project = ProjectId::from_record(&state.execution.project_id)?;
    if matches!(can_cancel(&state), Ok(true)) {
        end_execution(tx, customer, &mut state, Ending::Canceled).await?;
    } else {
        merging::expire(tx, customer, id).await?;
    }
    let changes = Some(ExecutionInput { archived: true });
    let change = Change { data_version: None, changes, fields: vec!["Archived".to_owned()] };
    archive::update(tx, customer, project, id, change).await
}
