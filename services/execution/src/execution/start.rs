//! Starts executions.

use assay_auth::Caller;
use assay_database::begin;
use assay_events::ExecutionAction;
use assay_ledger::{
    execution::{
        rules::{self, IdempotentRequest},
        store,
    },
    origin::{Origin, OriginNames},
    progress::{execution::ExecutionState, report::TestReportState},
    schedule::{self, Destination},
    settle::{events::announce, skip::skip},
    take_origin, test_report,
};
use assay_proto::{
    ExecutionId, ExecutionStatus, Fault, ProjectId, TestSetId,
    catalog::{Snapshot, SnapshotTarget, SnapshotTestCase, TakeSnapshotRequest},
    execution::{ExecutionMode, StartExecutionRequest},
};
use assay_records::Check;
use prost::Message;
use tonic::Status;

use super::{ExecutionService, idempotency::start_once};
use crate::{pool, quota::Kind};

impl ExecutionService {
    /// Starts an execution, or returns the one that the same request has started before.
    pub(super) async fn start(
        &self,
        caller: &Caller,
        mut request: StartExecutionRequest,
    ) -> Result<ExecutionId, Status> {
        let project = ProjectId::from_path(&request.project_id)?;
        let set = TestSetId::from_path(&request.test_set_id)?;
        let key = request.idempotency_key.take();
        key.as_deref().map(rules::check_idempotency_key).transpose()?;
        let idempotent = key.map(|key| IdempotentRequest { key, request: request.encode_to_vec() });
        let start = self.start_new(caller, project, set, request, idempotent.as_ref());
        start_once((&self.db, &self.limits.quota), caller, idempotent.as_ref(), Box::pin(start))
            .await
    }

    async fn start_new(
        &self,
        caller: &Caller,
        project: ProjectId,
        set: TestSetId,
        request: StartExecutionRequest,
        idempotent: Option<&IdempotentRequest>,
    ) -> Result<ExecutionId, Status> {
        let mut input = request.execution.unwrap_or_default();
        let origin = take_origin!(input);
        let mut check = Check::default();
        origin.check(&OriginNames::FIELDS, &mut check);
        check.done()?;
        let target = SnapshotTarget {
            project_id: request.project_id,
            test_set_id: request.test_set_id,
            subject_id: input.subject_id.clone(),
            environment_id: input.environment_id.clone(),
        };
        let request =
            TakeSnapshotRequest { target: Some(target), skip_not_ready: input.skip_not_ready };
        let mode = rules::mode_of(&input);
        self.limits.quota.claim(caller.customer, Kind::OpenExecutions, 1).await?;
        let (snapshot, memory) =
            self.catalog.take_snapshot(caller, request, &self.limits.intake).await?;
        let stored =
            self.store_new(caller, (project, set), snapshot, mode, origin, idempotent).await;
        let (id, destination) = stored?;
        drop(memory);
        if let Some(destination) = destination {
            self.queue.notify(caller.customer, &destination.queue).await;
        }
        Ok(id)
    }

    /// Stores a new execution, and its schedules if engines run it. Returns the queue of the
    /// schedules.
    async fn store_new(
        &self,
        caller: &Caller,
        (project, set): (ProjectId, TestSetId),
        mut snapshot: Snapshot,
        mode: ExecutionMode,
        origin: Origin,
        idempotent: Option<&IdempotentRequest>,
    ) -> Result<(ExecutionId, Option<Destination>), Fault> {
        let customer = caller.customer;
        let mut destination = (mode == ExecutionMode::Dispatch).then(|| Destination::of(&snapshot));
        let of_subject = snapshot.subject.as_ref().map(|subject| subject.pool_names.clone());
        let cases = std::mem::take(&mut snapshot.test_cases);
        let mut tx = begin(&self.db).await?;
        if let Some(destination) = &mut destination {
            let of_subject = of_subject.unwrap_or_default();
            pool::need(&mut tx, customer, project, destination, &of_subject, &cases).await?;
        }
        let id = store::next_id(&mut *tx, customer, set).await?;
        let mut state = ExecutionState::new(caller, id, (project, set), snapshot, origin, mode);
        if destination.is_none() {
            state.execution.set_status(ExecutionStatus::Running);
        }
        state.expect(cases.len());
        state.deadline_in_min = self.settings.deadline_in_min(state.execution.time_out);

        let id = store::insert(&mut tx, caller, &mut state, idempotent).await?;
        let numbers = test_report::store::count(&mut tx, customer, &cases).await?;
        let limits = self.settings;
        let report = |((id, case), number): ((_, &SnapshotTestCase), _)| {
            let mut report = TestReportState::new(id, case, number, case.instances);
            report.maximum_duration_in_min =
                limits.planned_in_min(case.minimum_duration_in_min, case.maximum_duration_in_min);
            report
        };
        let mut reports: Vec<_> =
            state.ids_of_reports(0).zip(&cases).zip(numbers).map(report).collect();
        test_report::store::insert(&mut tx, customer, id, &cases, &reports).await?;
        announce(&mut tx, customer, &state, ExecutionAction::Requested, &[]).await?;
        if let Some(destination) = &destination {
            skip(&mut tx, customer, &mut state, &mut reports).await?;
            schedule::store::insert(&mut tx, customer, project, id, destination, &reports).await?;
        }
        tx.commit().await?;
        Ok((id, destination))
    }
}
