//! The gRPC service of launches.

use assay_auth::Caller;
use assay_database::begin;
use assay_proto::{
    CustomerId, Fault, LaunchId,
    execution::{
        AddLaunchEntryRequest, AddLaunchLogsRequest, AddedLaunchEntry, AddedLaunchLogs,
        FindLaunchesRequest, FinishLaunchRequest, FoundLaunches, Launch, MergeLaunchesRequest,
        StartLaunchRequest, UpdateLaunchRequest, launch_service_server,
    },
};
use assay_rpc::body::{Memory, open};
use tonic::{Request, Response, Status, Streaming};
use uuid::Uuid;

use super::{
    Launches,
    body::{self, Entry, Kind},
    logs,
    staging::{self},
    store,
};
use crate::quota::Kind::{Artifacts, Staged};

/// Maximum size of a form with logs and their files, in bytes. Agents in Python send up to 64 MB.
const LARGEST_FORM: usize = 68 << 20;

impl Launches {
    /// Stores logs with their files, unless the files exceed the room of the customer: they become artifacts of an
    /// execution, which must not fail when the launch is over. Others who claim room wait for the check and the commit, not
    /// while the files are written.
    async fn stage(&self, customer: CustomerId, entries: &[Entry]) -> Result<(), Fault> {
        if entries.iter().all(|entry| entry.kind != Kind::File) {
            return staging::stage(&self.0.db, customer, entries).await;
        }
        let mut tx = begin(&self.0.db).await?;
        staging::stage(&mut *tx, customer, entries).await?;
        self.0.executions.limits.quota.check_added(&mut tx, customer).await?;
        Ok(tx.commit().await?)
    }
}

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
        let files = entries.iter().filter(|entry| entry.kind == Kind::File);
        let of_files = files.map(|entry| entry.body.len()).sum();
        limits.quota.claim(caller.customer, Artifacts, of_files).await?;
        limits.read(caller.customer, self.stage(caller.customer, &entries)).await?;
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
