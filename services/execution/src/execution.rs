//! Executions: runs of a test set, from their start to their end.

mod announce;
mod archive;
pub(crate) mod rules;
mod run;
pub(crate) mod store;

use assay_auth::Caller;
use assay_proto::{
    CustomerId, ExecutionId, ExecutionStatus, Fault, ProjectId, TestSetId,
    catalog::{FindRecordsRequest, TakeSnapshotRequest},
    execution::{
        CompleteExecutionRequest, Execution, ExecutionBatch, ExecutionMode, GetExecutionRequest,
        ListExecutionsRequest, StartExecutionRequest, UpdateExecutionRequest,
        execution_service_server,
    },
};
use assay_records::Change;
use assay_runtime::list::{self, Batches};
use futures::{StreamExt, TryStreamExt, stream};
use sqlx::{PgPool, PgTransaction};
use tonic::{Request, Response, Status};

pub(crate) use self::{
    announce::announce,
    run::{Run, earliest},
};
use crate::{
    catalog::Catalog,
    test_report::{self, Progress},
};

/// Answers calls about executions.
#[derive(Clone)]
pub(crate) struct ExecutionService {
    pub(crate) db: PgPool,
    pub(crate) catalog: Catalog,
}

impl ExecutionService {
    pub(crate) fn new(db: PgPool, catalog: Catalog) -> Self {
        Self { db, catalog }
    }

    pub(crate) async fn begin(&self) -> Result<PgTransaction<'static>, Fault> {
        Ok(self.db.begin().await?)
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
        let project = ProjectId::named(&request.project_id)?;
        let set = TestSetId::named_if_any(request.test_set_id.as_deref())?;
        let (project_id, test_set_id) = (request.project_id, request.test_set_id);
        let place = FindRecordsRequest { project_id, test_set_id, ..Default::default() };
        self.catalog.find(&caller, place).await?;
        let (db, customer, archived) = (self.db.clone(), caller.customer, request.archived);
        list::answer(request.page, move |slice| {
            let db = db.clone();
            async move { store::list(&db, customer, project, set, archived, &slice).await }
        })
        .await
    }

    async fn get_execution(
        &self,
        request: Request<GetExecutionRequest>,
    ) -> Result<Response<Self::GetExecutionStream>, Status> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let project = ProjectId::named(&request.project_id)?;
        let id = ExecutionId::named(&request.id)?;
        self.details(caller.customer, project, id).await
    }

    async fn update_execution(
        &self,
        request: Request<UpdateExecutionRequest>,
    ) -> Result<Response<()>, Status> {
        let customer = Caller::of(&request)?.customer;
        let UpdateExecutionRequest { project_id, id, data_version, changes, fields } =
            request.into_inner();
        let project = ProjectId::named(&project_id)?;
        let id = ExecutionId::named(&id)?;
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
        let project = ProjectId::named(&request.project_id)?;
        TestSetId::named(&request.test_set_id)?;
        let input = rules::startable(request.execution)?;
        let target = TakeSnapshotRequest {
            project_id: request.project_id,
            test_set_id: request.test_set_id,
            subject_id: input.subject_id,
            environment_id: input.environment_id,
            skip_not_ready: input.skip_not_ready,
        };
        let mut snapshot = self.catalog.take_snapshot(&caller, target.clone()).await?;
        let cases = std::mem::take(&mut snapshot.test_cases);

        let mut run = Run::new(&caller, target, snapshot, input.tags, ExecutionMode::External);
        run.execution.set_status(ExecutionStatus::Running);
        run.expect(cases.len());
        let mut tx = self.begin().await?;
        let id = store::insert(&mut tx, &caller, &mut run).await?;
        let numbers = test_report::store::count(&mut tx, caller.customer, &cases).await?;
        let reports: Vec<Progress> = cases
            .iter()
            .zip(numbers)
            .map(|(case, number)| Progress::new(case, number, case.instances))
            .collect();
        test_report::store::insert(&mut tx, caller.customer, id, &cases, &reports).await?;
        announce(&mut tx, caller.customer, &run, "Requested", &[]).await?;
        tx.commit().await.map_err(Fault::from)?;
        self.details(caller.customer, project, id).await
    }

    async fn complete_execution(
        &self,
        request: Request<CompleteExecutionRequest>,
    ) -> Result<Response<Self::CompleteExecutionStream>, Status> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let project = ProjectId::named(&request.project_id)?;
        let id = ExecutionId::named(&request.id)?;

        let mut tx = self.begin().await?;
        let mut run = store::lock(&mut tx, caller.customer, project, id).await?;
        if rules::completable(&run)? {
            let aborted = test_report::store::abort(&mut tx, caller.customer, id).await?;
            for report in &aborted {
                run.end_report(report.result());
            }
            run.complete();
            store::save(&mut tx, caller.customer, &mut run).await?;
            let aborted: Vec<_> = aborted.into_iter().map(|report| report.state).collect();
            announce(&mut tx, caller.customer, &run, "Completed", &aborted).await?;
            tx.commit().await.map_err(Fault::from)?;
        }
        self.details(caller.customer, project, id).await
    }
}
