//! How executions start, each once.

use assay_auth::Caller;
use assay_proto::{
    ExecutionId, ExecutionStatus, Fault, ProjectId, TestSetId,
    catalog::{Snapshot, TakeSnapshotRequest},
    execution::{ExecutionMode, StartExecutionInput, StartExecutionRequest},
};
use prost::Message;
use tonic::Status;

use super::{ExecutionService, Run, announce, once::Once, rules, store};
use crate::{
    schedule::{self, Destination},
    test_report::{self, Progress},
};

impl ExecutionService {
    /// Starts an execution, or finds the one that the same request has started before.
    pub(super) async fn start(
        &self,
        caller: &Caller,
        mut request: StartExecutionRequest,
    ) -> Result<ExecutionId, Status> {
        let project = ProjectId::from_path(&request.project_id)?;
        TestSetId::from_path(&request.test_set_id)?;
        let key = Once::key(request.idempotency_key.take())?;
        let once = key.map(|key| Once { key, request: request.encode_to_vec() });
        let start = self.start_anew(caller, project, request, once.as_ref());
        Once::start(once.as_ref(), &self.db, caller, start).await
    }

    async fn start_anew(
        &self,
        caller: &Caller,
        project: ProjectId,
        request: StartExecutionRequest,
        once: Option<&Once>,
    ) -> Result<ExecutionId, Status> {
        let input = rules::startable(request.execution)?;
        let target = TakeSnapshotRequest {
            project_id: request.project_id,
            test_set_id: request.test_set_id,
            subject_id: input.subject_id.clone(),
            environment_id: input.environment_id.clone(),
            skip_not_ready: input.skip_not_ready,
        };
        let intake = &self.limits.intake;
        let (snapshot, memory) = self.catalog.take_snapshot(caller, target.clone(), intake).await?;
        let started = self.store_started(caller, project, target, snapshot, input, once).await;
        let (id, queued) = started?;
        drop(memory);
        if let Some(destination) = queued {
            self.queue.tell(caller.customer, &destination.target_group).await;
        }
        Ok(id)
    }

    /// Stores an execution that starts, and its schedules if engines are to run it. Says which
    /// engines these are.
    async fn store_started(
        &self,
        caller: &Caller,
        project: ProjectId,
        target: TakeSnapshotRequest,
        mut snapshot: Snapshot,
        input: StartExecutionInput,
        once: Option<&Once>,
    ) -> Result<(ExecutionId, Option<Destination>), Fault> {
        let customer = caller.customer;
        let mode = rules::mode_of(&input);
        let queued = (mode == ExecutionMode::Dispatch).then(|| Destination::of(&snapshot));
        let cases = std::mem::take(&mut snapshot.test_cases);
        let mut run = Run::new(caller, target, snapshot, input.tags, mode);
        if queued.is_none() {
            run.execution.set_status(ExecutionStatus::Running);
        }
        run.expect(cases.len());
        run.deadline_in_min = self.settings.deadline_in_min(run.execution.time_out);

        let mut tx = self.begin().await?;
        let id = store::insert(&mut tx, caller, &mut run, once).await?;
        let numbers = test_report::store::count(&mut tx, customer, &cases).await?;
        let reports: Vec<Progress> = cases
            .iter()
            .zip(numbers)
            .map(|(case, number)| Progress::new(case, number, case.instances))
            .collect();
        test_report::store::insert(&mut tx, customer, id, &cases, &reports).await?;
        if let Some(destination) = &queued {
            schedule::store::insert(&mut tx, customer, project, id, destination, &reports).await?;
        }
        announce(&mut tx, customer, &run, "Requested", &[]).await?;
        tx.commit().await?;
        Ok((id, queued))
    }
}
