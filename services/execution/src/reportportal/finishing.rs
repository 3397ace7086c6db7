//! Finishing a launch, with its test cases adopted while the agent still waits.

use std::time::Duration;

use assay_auth::Caller;
use assay_proto::{ExecutionId, Fault, LaunchId};
use tokio::time::timeout;
use tonic::Status;

use super::{
    Launches,
    body::{self},
    staging::{self},
    store,
};

/// Maximum time for which the answer to the end of a launch waits until the catalog has adopted its
/// test cases. Agents in Python wait for ten seconds.
const ADOPTION: Duration = Duration::from_secs(5);

impl Launches {
    /// Finishes a launch that has started. Its test cases are adopted before the answer if that does
    /// not take too long, so that its results need no caller.
    pub(super) async fn finish(
        &self,
        caller: &Caller,
        id: LaunchId,
        body: &[u8],
    ) -> Result<ExecutionId, Status> {
        let (db, customer) = (&self.0.db, caller.customer);
        let found = self.read_with(customer, store::find(db, customer, id)).await?;
        let launch = found.ok_or(Fault::NotFound("launch"))?;
        let (project, execution) = launch.execution.ok_or(Fault::NotFound("launch"))?;
        if launch.finished || launch.ended {
            return Ok(execution);
        }
        self.read_with(customer, self.change(customer, id, (project, execution), body)).await?;
        self.0.callers.remember(caller, id);
        if let Some(end) = body::end(id, body) {
            self.read_with(customer, staging::stage(db, customer, &[end])).await?;
        }
        self.read_with(customer, store::finish(db, customer, id)).await?;
        self.adopt_soon(caller, id).await;
        Ok(execution)
    }

    /// Has the test cases of a finished launch adopted, if that does not take too long.
    pub(super) async fn adopt_soon(&self, caller: &Caller, id: LaunchId) {
        match timeout(ADOPTION, self.adopt(caller, id)).await {
            Ok(Ok(())) => {}
            Ok(Err(status)) => {
                tracing::warn!(%status, launch.id = %id,
                    "cannot adopt test cases of a launch; trying again");
            }
            Err(_) => tracing::info!(launch.id = %id, "adopting many test cases of a launch"),
        }
    }
}
