//! Executions: runs of a test set, from their start to their end.

mod announce;
mod archive;
pub(crate) mod list;
pub(crate) mod once;
pub(crate) mod rules;
mod run;
mod settle;
mod start;
pub(crate) mod store;

use assay_auth::Caller;
use assay_proto::{
    CustomerId, ExecutionId, Fault, ProjectId, TestSetId,
    catalog::FindRecordsRequest,
    execution::{
        CancelExecutionRequest, CompleteExecutionRequest, Execution, ExecutionBatch,
        GetExecutionRequest, ListExecutionsRequest, StartExecutionRequest, UpdateExecutionRequest,
        execution_service_server,
    },
};
use assay_records::Change;
use assay_runtime::{
    begin,
    list::{Batches, answer},
};
use futures::{StreamExt, TryStreamExt, stream};
use sqlx::{PgPool, PgTransaction};
use tonic::{Request, Response, Status};

use self::list::Wanted;
pub(crate) use self::{
    announce::{announce, events, reports_changed},
    run::{Run, earliest},
    settle::{end, finish, ids_of, mark_running, settle},
};
use crate::{
    catalog::Catalog,
    lease::Settings,
    limits::IngestLimits,
    place,
    queue::Queue,
    test_report::{self, Ending},
};

/// Answers calls about executions.
#[derive(Clone)]
pub(crate) struct ExecutionService {
    pub(crate) db: PgPool,
    pub(crate) catalog: Catalog,
    pub(crate) queue: Queue,
    pub(crate) limits: IngestLimits,
    pub(crate) settings: Settings,
}

impl ExecutionService {
    pub(crate) async fn begin(&self) -> Result<PgTransaction<'static>, Fault> {
        begin(&self.db).await
    }

    /// An execution in parts: all of it with its first reports, then only more reports.
    pub(crate) async fn details(
        &self,
        customer: CustomerId,
        project: ProjectId,
        id: ExecutionId,
    ) -> Result<Response<Batches<Execution>>, Status> {
        let execution = store::get(&self.db, customer, project, id).await?.into_details();
        let mut parts = Box::pin(test_report::of_execution(self.db.clone(), customer, id));
        let test_reports = parts.try_next().await?.unwrap_or_default();
        let first = Execution { test_reports, ..execution };
        let others = parts
            .map_ok(|test_reports| Execution { test_reports, ..Execution::default() })
            .map_err(Status::from);
        Ok(Response::new(Box::pin(stream::iter([Ok(first)]).chain(others))))
    }
}

#[tonic::async_trait]
impl execution_service_server::ExecutionService for ExecutionService {
    type ListExecutionsStream = Batches<ExecutionBatch>;
    type GetExecutionStream = Batches<Execution>;
    type StartExecutionStream = Batches<Execution>;
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
        let place = FindRecordsRequest { project_id, test_set_id, ..Default::default() };
        place::check(&self.db, &self.catalog, &caller, project, place).await?;
        let customer = caller.customer;
        let wanted = Wanted { customer, project, set, archived: request.archived };
        let db = self.db.clone();
        answer(request.page, move |slice| {
            let db = db.clone();
            async move { list::list(&db, wanted, &slice).await }
        })
        .await
    }

    async fn get_execution(
        &self,
        request: Request<GetExecutionRequest>,
    ) -> Result<Response<Self::GetExecutionStream>, Status> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let project = ProjectId::from_path(&request.project_id)?;
        let id = ExecutionId::from_path(&request.id)?;
        self.details(caller.customer, project, id).await
    }

    async fn update_execution(
        &self,
        request: Request<UpdateExecutionRequest>,
    ) -> Result<Response<()>, Status> {
        let customer = Caller::of(&request)?.customer;
        let UpdateExecutionRequest { project_id, id, data_version, changes, fields } =
            request.into_inner();
        let project = ProjectId::from_path(&project_id)?;
        let id = ExecutionId::from_path(&id)?;
        let change = Change { data_version, changes, fields };

        let mut tx = self.begin().await?;
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
        self.details(caller.customer, project, id).await
    }

    async fn complete_execution(
        &self,
        request: Request<CompleteExecutionRequest>,
    ) -> Result<Response<Self::CompleteExecutionStream>, Status> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let project = ProjectId::from_path(&request.project_id)?;
        let id = ExecutionId::from_path(&request.id)?;

        let mut tx = self.begin().await?;
        let mut run = store::lock(&mut tx, caller.customer, project, id).await?;
        if rules::completable(&run)? {
            finish(&mut tx, caller.customer, &mut run, Ending::Aborted).await?;
            tx.commit().await.map_err(Fault::from)?;
        }
        self.details(caller.customer, project, id).await
    }

    async fn cancel_execution(
        &self,
        request: Request<CancelExecutionRequest>,
    ) -> Result<Response<()>, Status> {
        let customer = Caller::of(&request)?.customer;
        let request = request.into_inner();
        let project = ProjectId::from_path(&request.project_id)?;
        let id = ExecutionId::from_path(&request.id)?;

        let mut tx = self.begin().await?;
        let mut run = store::lock(&mut tx, customer, project, id).await?;
        if rules::cancelable(&run)? {
            finish(&mut tx, customer, &mut run, Ending::Canceled).await?;
            tx.commit().await.map_err(Fault::from)?;
        }
        Ok(Response::new(()))
    }
}
