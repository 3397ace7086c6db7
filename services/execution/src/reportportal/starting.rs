//! Starting a launch: opening its execution, or continuing the one whose tests are run again.

use assay_auth::Caller;
use assay_proto::{
    ExecutionId, LaunchId, ProjectId, TestSetId,
    catalog::FindTestSetRequest,
    execution::{Launch, OpenExecutionInput, OpenExecutionRequest},
};
use tonic::Status;

use super::{
    Launches,
    body::{Opening, Rerun},
    store,
};

impl Launches {
    /// Starts a launch, or returns the one that has started with the same id.
    pub(super) async fn start(&self, caller: &Caller, opening: Opening) -> Result<Launch, Status> {
        let (db, customer) = (&self.0.db, caller.customer);
        let Opening { launch: id, agent, description, rerun, request } = opening;
        if !matches!(rerun, Rerun::No)
            && let Some((first, execution)) = self.rerun(caller, rerun, &request).await?
        {
            return Ok(self.launch(first, execution));
        }
        let found = store::find(db, customer, id).await?.and_then(|launch| launch.execution);
        let execution = if let Some((_, execution)) = found {
            execution
        } else {
            let opened = Box::pin(self.0.executions.open(caller, request)).await?;
            store::start(db, customer, id, opened, (&agent, &description)).await?
        };
        if let Err(fault) = self.lend(caller).await {
            tracing::warn!(error = %fault, "cannot read the launches that need a caller");
        }
        Ok(self.launch(id, execution))
    }

    /// Continues the launch of the same project whose tests are run again, if its results are not stored
    /// yet.
    async fn rerun(
        &self,
        caller: &Caller,
        rerun: Rerun,
        request: &OpenExecutionRequest,
    ) -> Result<Option<(LaunchId, ExecutionId)>, Status> {
        let (db, customer) = (&self.0.db, caller.customer);
        let OpenExecutionInput { project, test_set, .. } =
            request.execution.clone().unwrap_or_default();
        let names = FindTestSetRequest { project, test_set, ..FindTestSetRequest::default() };
        let found = self.0.executions.catalog.find_test_set(caller, names).await?;
        let project = ProjectId::from_record(&found.project_id)?;
        let first = match rerun {
            Rerun::No => None,
            Rerun::Of(first) => Some(first),
            Rerun::OfLast => {
                let set = TestSetId::from_record(&found.test_set_id)?;
                store::last(db, customer, set).await?
            }
        };
        let Some(first) = first else { return Ok(None) };
        let execution = store::rerun(db, customer, project, first).await?;
        Ok(execution.map(|execution| (first, execution)))
    }
}
