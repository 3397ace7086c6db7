//! Launches: executions that agents of ReportPortal report. Requests are staged as they are, and
//! become results when the launch is over.

mod adoption;
mod attributes;
mod body;
mod changes;
mod closing;
mod late;
mod logs;
mod merging;
mod rounds;
mod staging;
pub(crate) mod store;

use std::{sync::Arc, time::Duration};

use assay_auth::Caller;
use assay_proto::{
    CustomerId, ExecutionId, Fault, LaunchId, ProjectId, TestSetId,
    catalog::FindTestSetRequest,
    execution::{
        AddLaunchEntryRequest, AddLaunchLogsRequest, AddedLaunchEntry, AddedLaunchLogs,
        FindLaunchesRequest, FinishLaunchRequest, FoundLaunches, Launch, MergeLaunchesRequest,
        OpenExecutionInput, OpenExecutionRequest, StartLaunchRequest, UpdateLaunchRequest,
        launch_service_server,
    },
};
use assay_runtime::{
    Shares,
    body::{Memory, open},
};
use sqlx::PgPool;
use tokio::time::timeout;
use tonic::{Request, Response, Status, Streaming};
use uuid::Uuid;

use self::{
    adoption::Callers,
    body::{Opening, Rerun, number},
    staging::Staging,
};
use crate::{
    artifact::Artifacts, execution::ExecutionService, quota::Kind::Staged, result::ResultService,
};

/// Maximum size of a form with logs and their files, in bytes. Agents in Python send up to 64 MB.
const LARGEST_FORM: usize = 68 << 20;

/// Maximum time for which the answer to the end of a launch waits until the catalog has adopted its
/// test cases. Agents in Python wait for ten seconds.
const ADOPTION: Duration = Duration::from_secs(5);

/// The launches of all customers.
#[derive(Clone)]
pub struct Launches(Arc<Inner>);

struct Inner {
    db: PgPool,
    executions: ExecutionService,
    results: ResultService,
    artifacts: Artifacts,
    staging: Staging,
    callers: Callers,
}

impl Launches {
    pub(crate) fn new(
        executions: ExecutionService,
        results: ResultService,
        shares: &Shares,
    ) -> Self {
        let (db, artifacts) = (executions.db.clone(), results.artifacts.clone());
        let (staging, callers) = (staging::gather(&db, shares), Callers::default());
        Self(Arc::new(Inner { db, executions, results, artifacts, staging, callers }))
    }

    /// Reads or writes with a share of the database, which calls of launches do not hold all the time.
    async fn read_with<T>(
        &self,
        customer: CustomerId,
        work: impl Future<Output = Result<T, Fault>>,
    ) -> Result<T, Fault> {
        self.0.executions.limits.read(customer, work).await
    }

    /// Starts a launch, or returns the one that has started with the same id.
    async fn start(&self, caller: &Caller, opening: Opening) -> Result<Launch, Status> {
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

    /// Returns the form of a launch in the interface.
    fn launch(&self, id: LaunchId, execution: ExecutionId) -> Launch {
        let link = self.0.executions.pages.execution(&execution.to_string());
        Launch { id: id.to_string(), number: number(id), link }
    }

    /// Finishes a launch that has started. Its test cases are adopted before the answer if that does
    /// not take too long, so that its results need no caller.
    async fn finish(
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
    async fn adopt_soon(&self, caller: &Caller, id: LaunchId) {
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

/// The execution of a launch, with its project.
type OfProject = (ProjectId, ExecutionId);

#[tonic::async_trait]
impl launch_service_server::LaunchService for Launches {
    async fn start_launch(
        &self,
        request: Request<StartLaunchRequest>,
    ) -> Result<Response<Launch>, Status> {
        let caller = Caller::of(&request)?;
        let StartLaunchRequest { project, body } = request.into_inner();
        let opening = body::opening(project, &body)?;
        Ok(Response::new(self.start(&caller, opening).await?))
    }

    async fn add_launch_entry(
        &self,
        request: Request<AddLaunchEntryRequest>,
    ) -> Result<Response<AddedLaunchEntry>, Status> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let (kind, item) = (request.kind(), request.item_id.as_deref());
        let (entry, id) = body::entry(kind, item, request.body)?;
        let quota = &self.0.executions.limits.quota;
        quota.claim(caller.customer, Staged, entry.body.len()).await?;
        self.0.callers.remember(&caller, entry.launch);
        self.0.staging.run(caller.customer, entry).await?;
        Ok(Response::new(AddedLaunchEntry { id: id.to_string() }))
    }

    async fn add_launch_logs(
        &self,
        request: Request<Streaming<AddLaunchLogsRequest>>,
    ) -> Result<Response<AddedLaunchLogs>, Status> {
        let caller = Caller::of(&request)?;
        let limits = &self.0.executions.limits;
        let ((), pieces) = open(request.into_inner()).await?;
        let intake = limits.intake.up_to(LARGEST_FORM);
        let parse = |body, memory: &mut Memory| logs::read(body, memory);
        let ((entries, ids), memory) = intake.read(caller.customer, pieces, parse).await?;
        let size = entries.iter().map(|entry| entry.body.len()).sum();
        limits.quota.claim(caller.customer, Staged, size).await?;
        let stored = staging::stage(&self.0.db, caller.customer, &entries);
        limits.read(caller.customer, stored).await?;
        drop(memory);
        let ids = ids.iter().map(Uuid::to_string).collect();
        Ok(Response::new(AddedLaunchLogs { ids }))
    }

    async fn finish_launch(
        &self,
        request: Request<FinishLaunchRequest>,
    ) -> Result<Response<Launch>, Status> {
        let caller = Caller::of(&request)?;
        let FinishLaunchRequest { launch_id, body } = request.into_inner();
        let id = LaunchId::from_path(&launch_id)?;
        let execution = self.finish(&caller, id, &body).await?;
        Ok(Response::new(self.launch(id, execution)))
    }

    async fn update_launch(
        &self,
        request: Request<UpdateLaunchRequest>,
    ) -> Result<Response<Launch>, Status> {
        let customer = Caller::of(&request)?.customer;
        let UpdateLaunchRequest { launch_id, body } = request.into_inner();
        let id = LaunchId::from_path(&launch_id)?;
        let found = store::find(&self.0.db, customer, id).await?;
        let execution =
            found.and_then(|launch| launch.execution).ok_or(Fault::NotFound("launch"))?;
        self.change(customer, id, execution, &body).await?;
        Ok(Response::new(self.launch(id, execution.1)))
    }

    async fn find_launches(
        &self,
        request: Request<FindLaunchesRequest>,
    ) -> Result<Response<FoundLaunches>, Status> {
        let customer = Caller::of(&request)?.customer;
        let FindLaunchesRequest { ids, numbers } = request.into_inner();
        let ids: Vec<Uuid> = ids.iter().filter_map(|id| Uuid::try_parse(id).ok()).collect();
        let found = store::find_all(&self.0.db, customer, &ids, &numbers).await?;
        let launches = found.into_iter().map(|(id, execution)| self.launch(id, execution));
        Ok(Response::new(FoundLaunches { launches: launches.collect() }))
    }

    async fn merge_launches(
        &self,
        request: Request<MergeLaunchesRequest>,
    ) -> Result<Response<Launch>, Status> {
        let caller = Caller::of(&request)?;
        let MergeLaunchesRequest { project, body } = request.into_inner();
        Ok(Response::new(Box::pin(self.merge(&caller, project, &body)).await?))
    }
}
