//! How executions start, each once.

use assay_auth::Caller;
use assay_proto::{
    ExecutionId, ExecutionStatus, Fault, OnConstraint, ProjectId, TestSetId,
    catalog::{Snapshot, TakeSnapshotRequest},
    execution::{ExecutionMode, StartExecutionInput, StartExecutionRequest},
};
use prost::Message;
use sqlx::PgPool;
use tonic::Status;

use super::{ExecutionService, Run, announce, rules, store};
use crate::{
    schedule::{self, Destination},
    test_report::{self, Progress},
};

/// A request that starts one execution, however often it is sent.
pub(crate) struct Once {
    pub(crate) key: String,
    /// The request without its key: the key must not come with another one.
    pub(crate) request: Vec<u8>,
}

impl Once {
    /// Takes the key out of a request that has one.
    fn of(request: &mut StartExecutionRequest) -> Result<Option<Self>, Fault> {
        let Some(key) = request.idempotency_key.take() else { return Ok(None) };
        rules::check_idempotency_key(&key)?;
        Ok(Some(Self { key, request: request.encode_to_vec() }))
    }

    /// The execution that was started by this request, if it was sent before.
    async fn started(&self, db: &PgPool, caller: &Caller) -> Result<Option<ExecutionId>, Fault> {
        let (customer, user) = (caller.customer, caller.user);
        match store::started_once(db, customer, user, &self.key).await? {
            Some((_, request)) if request != self.request => {
                let reason = "the Idempotency-Key was sent before, with another request".to_owned();
                Err(Fault::Refused { code: "idempotency_key_reused", reason })
            }
            started => Ok(started.map(|(id, _)| id)),
        }
    }
}

impl ExecutionService {
    /// Starts an execution, or finds the one that the same request has started before.
    pub(super) async fn start(
        &self,
        caller: &Caller,
        mut request: StartExecutionRequest,
    ) -> Result<ExecutionId, Status> {
        let project = ProjectId::named(&request.project_id)?;
        TestSetId::named(&request.test_set_id)?;
        let Some(once) = Once::of(&mut request)? else {
            return self.start_anew(caller, project, request, None).await;
        };
        if let Some(started) = once.started(&self.db, caller).await? {
            return Ok(started);
        }
        match self.start_anew(caller, project, request, Some(&once)).await {
            Err(status) => match once.started(&self.db, caller).await? {
                // Somebody else was a moment faster.
                Some(started) => Ok(started),
                None => Err(status),
            },
            started => started,
        }
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
        let snapshot = self.catalog.take_snapshot(caller, target.clone()).await?;
        let started = self.store_started(caller, project, target, snapshot, input, once).await;
        let (id, queued) = started?;
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

        let mut tx = self.begin().await?;
        let id = store::insert(&mut tx, caller, &mut run, once)
            .await
            .on_constraint("execution_idempotency_key_key", Fault::AlreadyExists("execution"))?;
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
