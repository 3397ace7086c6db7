//! The gRPC service of executions.

use assay_auth::Caller;
use assay_database::begin;
use assay_ledger::{
    execution::{rules, store},
    progress::report::Ending,
    settle::end_execution,
};
use assay_proto::{
    ExecutionId, Fault, ProjectId, TestSetId,
    catalog::FindRecordsRequest,
    execution::{
        CancelExecutionRequest, CompleteExecutionRequest, Execution, ExecutionBatch,
        ExecutionSummary, GetExecutionRequest, GetExecutionSummaryRequest, GetVerdictRequest,
        ListExecutionsRequest, OpenExecutionRequest, StartExecutionRequest, UpdateExecutionRequest,
        Verdict, execution_service_server,
    },
};
use assay_records::{Change, Check};
use assay_rpc::list::{Batches, answer};
use tonic::{Request, Response, Status};

use super::{
    ExecutionService, archive,
    details::details,
    filter::{Fields, ListFilter},
    list, open, summary, verdict,
};
use crate::parent;

#[tonic::async_trait]
impl execution_service_server::ExecutionService for ExecutionService {
    type ListExecutionsStream = Batches<ExecutionBatch>;
    type GetExecutionStream = Batches<Execution>;
    type StartExecutionStream = Batches<Execution>;
    type OpenExecutionStream = Batches<Execution>;
    type CompleteExecutionStream = Batches<Execution>;

    async fn list_executions(
        &self,
        request: Request<ListExecutionsRequest>,
    ) -> Result<Response<Self::ListExecutionsStream>, Status> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let project = ProjectId::from_path(&request.project_id)?;
        let set = TestSetId::from_path_if_any(request.test_set_id.as_deref())?;
        let (project_id, test_set_id) = (request.project_id, request.test_set_id);
        let parent = FindRecordsRequest { project_id, test_set_id, ..Default::default() };
        parent::check_exists(&self.db, &self.catalog, &caller, project, parent).await?;
        let customer = caller.customer;
        let fields = Fields::of(&request.filter.unwrap_or_default())?;
        let filter = ListFilter { customer, project, set, archived: request.archived, fields };
        let db = self.db.clone();
        answer(request.page, move |slice| {
            let (db, filter) = (db.clone(), filter.clone());
            async move { list::list(&db, &filter, &slice).await }
        })
        .await
    }

    async fn get_execution(
        &self,
        request: Request<GetExecutionRequest>,
    ) -> Result<Response<Self::GetExecutionStream>, Status> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let project = ProjectId::from_path_unless_empty(&request.project_id)?;
        let id = ExecutionId::from_path(&request.id)?;
        details(&self.db, &self.console, caller.customer, project, id).await
    }

    async fn get_execution_summary(
        &self,
        request: Request<GetExecutionSummaryRequest>,
    ) -> Result<Response<ExecutionSummary>, Status> {
        let customer = Caller::of(&request)?.customer;
        let request = request.into_inner();
        let project = ProjectId::from_path_if_any(request.project_id.as_deref())?;
        let id = ExecutionId::from_path(&request.id)?;
        Ok(Response::new(summary::of(&self.db, &self.console, customer, project, id).await?))
    }

    async fn get_verdict(
        &self,
        request: Request<GetVerdictRequest>,
    ) -> Result<Response<Verdict>, Status> {
        let customer = Caller::of(&request)?.customer;
        let request = request.into_inner();
        let project = ProjectId::from_path_if_any(request.project_id.as_deref())?;
        let id = ExecutionId::from_path(&request.execution_id)?;
        Ok(Response::new(verdict::of(&self.db, &self.console, customer, project, id).await?))
    }

    async fn update_execution(
        &self,
        request: Request<UpdateExecutionRequest>,
    ) -> Result<Response<()>, Status> {
        let customer = Caller::of(&request)?.customer;
        let UpdateExecutionRequest { project_id, id, data_version, changes, fields } =
            request.into_inner();
        let project = ProjectId::from_path_unless_empty(&project_id)?;
        let id = ExecutionId::from_path(&id)?;
        let change = Change { data_version, changes, fields };

        let mut tx = begin(&self.db).await?;
        archive::update(&mut tx, customer, project, id, change).await?;
        tx.commit().await.map_err(Fault::from)?;
        Ok(Response::new(()))
    }

    async fn start_execution(
        &self,
        request: Request<StartExecutionRequest>,
    ) -> Result<Response<Self::StartExecutionStream>, Status> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let project = ProjectId::from_path(&request.project_id)?;
        let id = self.start(&caller, request).await?;
        details(&self.db, &self.console, caller.customer, project, id).await
    }

    async fn open_execution(
        &self,
        request: Request<OpenExecutionRequest>,
    ) -> Result<Response<Self::OpenExecutionStream>, Status> {
        let caller = Caller::of(&request)?;
        let (project, id) = Box::pin(self.open(&caller, request.into_inner())).await?;
        details(&self.db, &self.console, caller.customer, project, id).await
    }

    async fn complete_execution(
        &self,
        request: Request<CompleteExecutionRequest>,
    ) -> Result<Response<Self::CompleteExecutionStream>, Status> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let project = ProjectId::from_path_unless_empty(&request.project_id)?;
        let id = ExecutionId::from_path(&request.id)?;
        let mut check = Check::default();
        if let Some(reporter) = &request.reporter {
            rules::check_reporter("reporter", reporter, &mut check);
        }
        check.done()?;

        let customer = caller.customer;
        let mut tx = begin(&self.db).await?;
        let mut state = store::lock(&mut tx, customer, project, id).await?;
        if rules::can_complete(&state)? {
            match &request.reporter {
                Some(reporter) => {
                    rules::require_open(&state)?;
                    open::complete_reporter(&mut tx, customer, id, &mut state, reporter).await?;
                }
                None => end_execution(&mut tx, customer, &mut state, Ending::Aborted).await?,
            }
            tx.commit().await.map_err(Fault::from)?;
        }
        details(&self.db, &self.console, customer, project, id).await
    }

    async fn cancel_execution(
        &self,
        request: Request<CancelExecutionRequest>,
    ) -> Result<Response<()>, Status> {
        let customer = Caller::of(&request)?.customer;
        let request = request.into_inner();
        let project = ProjectId::from_path_unless_empty(&request.project_id)?;
        let id = ExecutionId::from_path(&request.id)?;

        let mut tx = begin(&self.db).await?;
        let mut state = store::lock(&mut tx, customer, project, id).await?;
        if rules::can_cancel(&state)? {
            end_execution(&mut tx, customer, &mut state, Ending::Canceled).await?;
            tx.commit().await.map_err(Fault::from)?;
            self.queue.stop(customer, id).await;
        }
        Ok(Response::new(()))
    }
}
