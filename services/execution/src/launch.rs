//! Launches: executions that agents of ReportPortal report. Requests are staged as they are, and
//! become results when the launch is over.

mod adoption;
mod body;
mod closing;
mod logs;
mod merging;
mod staging;
pub(crate) mod store;

use std::{sync::Arc, time::Duration};

use assay_auth::Caller;
use assay_proto::{
    ExecutionId, Fault, LaunchId, ProjectId,
    execution::{
        AddLaunchEntryRequest, AddLaunchLogsRequest, AddedLaunchEntry, AddedLaunchLogs,
        FindLaunchesRequest, FinishLaunchRequest, FoundLaunches, Launch, MergeLaunchesRequest,
        OpenExecutionRequest, StartLaunchRequest, launch_service_server,
    },
};
use assay_runtime::{Database, Runtime, Shares, body::open};
use sqlx::PgPool;
use tokio::{
    time::{sleep, timeout},
    try_join,
};
use tonic::{Request, Response, Status, Streaming};
use uuid::Uuid;

use self::{
    adoption::Callers,
    body::{Opening, number},
    staging::Staging,
};
use crate::{artifact::Artifacts, execution::ExecutionService, result::ResultService};

/// Interval between rounds of the task.
const INTERVAL: Duration = Duration::from_secs(1);

/// Maximum size of a form with logs and their files, in bytes. Agents in Python send up to 64 MB.
const LARGEST_FORM: usize = 68 << 20;

/// Maximum time for which the answer to the end of a launch waits until the catalog has adopted its
/// test cases. Agents in Python wait for ten seconds.
const ADOPTION: Duration = Duration::from_secs(8);

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

    /// Starts the task that adopts the test cases of launches and closes those that are over.
    pub(crate) fn spawn(&self, runtime: &Runtime, database: &Database) {
        let (launches, database, stopping) = (self.clone(), database.clone(), runtime.stopping());
        runtime.spawn("launches", async move {
            let work = async {
                database.ready().await;
                loop {
                    if let Err(fault) = Box::pin(launches.round()).await {
                        tracing::warn!(error = %fault, "cannot read the launches that are over");
                    }
                    sleep(INTERVAL).await;
                }
            };
            stopping.run_until_cancelled(work).await;
            Ok(())
        });
    }

    /// Adopts the test cases of launches that pause, stores the results of those that are over, and
    /// removes old ones.
    pub async fn round(&self) -> Result<(), Fault> {
        self.adopt_paused().await;
        try_join!(self.close_all(), self.close_all(), self.close_all())?;
        store::remove_old(&self.0.db).await
    }

    /// Closes the launches that are due, one after the other.
    async fn close_all(&self) -> Result<(), Fault> {
        while Box::pin(self.close_next()).await? {}
        Ok(())
    }

    /// Starts a launch, or returns the one that has started with the same id.
    async fn start(&self, caller: &Caller, opening: Opening) -> Result<Launch, Status> {
        let (db, customer) = (&self.0.db, caller.customer);
        let Opening { launch: id, agent, input } = opening;
        let found = store::find(db, customer, id).await?.and_then(|launch| launch.execution);
        let execution = if let Some((_, execution)) = found {
            execution
        } else {
            let request = OpenExecutionRequest { execution: Some(input), idempotency_key: None };
            let opened = Box::pin(self.0.executions.open(caller, request)).await?;
            store::start(db, customer, id, opened, &agent).await?
        };
        self.adopt_of_others(caller).await;
        Ok(self.launch(id, execution))
    }

    /// Returns the form of a launch in the interface.
    fn launch(&self, id: LaunchId, execution: ExecutionId) -> Launch {
        let link = self.0.executions.pages.execution(&execution.to_string());
        Launch { id: id.to_string(), number: number(id), link }
    }

    /// Finishes a launch that has started. Its test cases are adopted before the answer if that does
    /// not take too long, and otherwise soon after.
    async fn finish(&self, caller: &Caller, id: LaunchId) -> Result<ExecutionId, Status> {
        let (db, customer) = (&self.0.db, caller.customer);
        let found = store::find(db, customer, id).await?;
        let launch = found.filter(|launch| launch.execution.is_some());
        let launch = launch.ok_or(Fault::NotFound("launch"))?;
        let execution = launch.execution.map(|(_, execution)| execution);
        if launch.finished || launch.ended {
            return Ok(execution.unwrap_or(ExecutionId(Uuid::nil())));
        }
        self.0.callers.remember(caller, id);
        store::finish(db, customer, id).await?;
        match timeout(ADOPTION, self.adopt(caller, id)).await {
            Ok(Ok(())) => self.0.callers.forget(customer, id),
            Ok(Err(status)) => {
                tracing::warn!(%status, launch.id = %id, "cannot adopt test cases of a launch; trying again");
            }
            Err(_) => tracing::info!(launch.id = %id, "adopting many test cases of a launch"),
        }
        Ok(execution.unwrap_or(ExecutionId(Uuid::nil())))
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
        let parse = |body, _: &mut _| logs::read(body);
        let ((entries, ids), memory) = intake.read(caller.customer, pieces, parse).await?;
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
        let id = LaunchId::from_path(&request.into_inner().launch_id)?;
        let execution = self.finish(&caller, id).await?;
        Ok(Response::new(self.launch(id, execution)))
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
