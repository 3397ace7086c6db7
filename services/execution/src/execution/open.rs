//! Opens executions, whose clients report test cases that no list names before.

use assay_auth::Caller;
use assay_database::begin;
use assay_events::ExecutionAction;
use assay_ledger::{
    execution::{
        rules::{self, IdempotentRequest},
        store,
    },
    origin::Origin,
    progress::{execution::ExecutionState, report::Ending},
    settle::{end_execution, events::announce},
    take_origin,
};
use assay_proto::{
    CustomerId, ExecutionId, Fault, ProjectId, TestSetId,
    catalog::{FindTestSetRequest, SnapshotTarget},
    execution::{ExecutionMode, OpenExecutionInput, OpenExecutionRequest},
};
use prost::Message;
use sqlx::PgTransaction;
use tonic::Status;

use super::{ExecutionService, idempotency::start_once, reporter};
use crate::quota::Kind;

impl ExecutionService {
    /// Opens an execution, or joins the one that the key or the same request has opened before.
    pub(crate) async fn open(
        &self,
        caller: &Caller,
        mut request: OpenExecutionRequest,
    ) -> Result<(ProjectId, ExecutionId), Status> {
        let key = request.idempotency_key.take();
        key.as_deref().map(rules::check_idempotency_key).transpose()?;
        let idempotent = key.map(|key| IdempotentRequest { key, request: request.encode_to_vec() });
        let mut input = request.execution.unwrap_or_default();
        let origin = take_origin!(input);
        rules::check_open(&input, &origin)?;
        if let Some((_, end)) = rules::past(caller, &input)?
            && !store::has_passed(&self.db, end).await?
        {
            return Err(Fault::invalid("CompletionDateTime", "must not be in the future").into());
        }
        let sought = FindTestSetRequest {
            project: input.project.clone(),
            test_set: input.test_set.clone(),
            subject: request.subject,
            environment: request.environment,
        };
        let found = self.catalog.find_test_set(caller, sought).await?;
        let project = ProjectId::from_record(&found.project_id)?;
        let set = TestSetId::from_record(&found.test_set_id)?;
        let target = SnapshotTarget {
            subject_id: input.subject_id.clone().or(found.subject_id),
            environment_id: input.environment_id.clone().or(found.environment_id),
            ..found
        };
        let open = async {
            if let Some(id) = self.join(caller.customer, project, set, &input).await? {
                return Ok(id);
            }
            let opened =
                self.open_new(caller, (project, set), target, &input, origin, idempotent.as_ref());
            match opened.await {
                Err(status) => match self.join(caller.customer, project, set, &input).await? {
                    // A concurrent request with the same key was faster.
                    Some(id) => Ok(id),
                    None => Err(status),
                },
                opened => opened,
            }
        };
        Ok((
            project,
            start_once((&self.db, &self.limits.quota), caller, idempotent.as_ref(), Box::pin(open))
                .await?,
        ))
    }

    /// Lets the reporter take part in the execution with the key, if there is one that has not ended.
    /// One that has ended is returned as it is.
    async fn join(
        &self,
        customer: CustomerId,
        project: ProjectId,
        set: TestSetId,
        input: &OpenExecutionInput,
    ) -> Result<Option<ExecutionId>, Fault> {
        let Some(key) = &input.key else { return Ok(None) };
        let Some(id) = store::find_open(&self.db, customer, set, key).await? else {
            return Ok(None);
        };
        let mut tx = begin(&self.db).await?;
        let state = store::lock(&mut tx, customer, project, id).await?;
        if state.has_ended() {
            return Ok(Some(id));
        }
        join_as(&mut tx, customer, id, input).await?;
        store::prolong(&mut tx, customer, id).await?;
        tx.commit().await?;
        Ok(Some(id))
    }

    async fn open_new(
        &self,
        caller: &Caller,
        (project, set): (ProjectId, TestSetId),
        target: SnapshotTarget,
        input: &OpenExecutionInput,
        origin: Origin,
        idempotent: Option<&IdempotentRequest>,
    ) -> Result<ExecutionId, Status> {
        self.limits.quota.claim(caller.customer, Kind::OpenExecutions, 1).await?;
        let (snapshot, memory) =
            self.catalog.adopt(caller, target, Vec::new(), &self.limits.intake).await?;
        let mode = ExecutionMode::External;
        let id = store::next_id(&self.db, caller.customer, set).await?;
        let mut state = ExecutionState::new(caller, id, (project, set), snapshot, origin, mode);
        let past = rules::past(caller, input)?;
        if let Some((request_time, end)) = past {
            state.move_to_past(request_time, end);
        }
        state.open(input, input.grace_in_sec.unwrap_or(self.settings.grace_seconds));
        state.deadline_in_min = self.settings.deadline_in_min(state.execution.time_out);
        let mut tx = begin(&self.db).await?;
        if let Some((request_time, _)) = past {
            store::prepare_past(&mut tx, request_time).await?;
        }
        let id = store::insert(&mut tx, caller, &mut state, idempotent).await?;
        join_as(&mut tx, caller.customer, id, input).await?;
        store::add_notes(&mut tx, caller.customer, id, &input.notes).await?;
        announce(&mut tx, caller.customer, &state, ExecutionAction::Requested, &[]).await?;
        tx.commit().await.map_err(Fault::from)?;
        drop(memory);
        Ok(id)
    }
}

async fn join_as(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    id: ExecutionId,
    input: &OpenExecutionInput,
) -> Result<(), Fault> {
    match &input.reporter {
        Some(name) => reporter::join(tx, customer, id, name).await,
        None => Ok(()),
    }
}

/// Completes the part of a reporter of a locked execution. The last one that is expected ends the
/// execution.
pub(super) async fn complete_reporter(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    id: ExecutionId,
    state: &mut ExecutionState,
    name: &str,
) -> Result<(), Fault> {
    reporter::complete(tx, customer, id, name).await?;
    let (completed, others) = reporter::count(tx, customer, id).await?;
    let is_last = state.execution.reporters.is_some_and(|expected| completed >= expected.into());
    if is_last && others == 0 {
        return end_execution(tx, customer, state, Ending::Aborted).await;
    }
    store::prolong(tx, customer, id).await
}
