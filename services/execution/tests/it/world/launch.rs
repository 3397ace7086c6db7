//! Launches, reported as agents of ReportPortal do.

use assay_execution::{ConsoleLinks, Launches};
use assay_fair::Shares;
use assay_proto::execution::{
    AddLaunchEntryRequest, AddLaunchLogsRequest, FindLaunchesRequest, FinishLaunchRequest,
    FormFile, Launch, LaunchEntryKind, MergeLaunchesRequest, StartLaunchRequest,
    launch_service_client::LaunchServiceClient,
};
use assay_rpc::grpc::{self, Channel};
use bytes::Bytes;
use futures::stream;
use serde_json::{Value, json};
use tonic::Status;

use super::{LEASES, World};

/// A launch that an agent reports.
pub(crate) struct Reported<'w> {
    world: &'w World,
    pub(crate) id: String,
}

impl World {
    pub(crate) fn launch_service(&self) -> LaunchServiceClient<Channel> {
        LaunchServiceClient::new(self.execution.clone())
    }

    /// Starts a launch with this name in the project of the world.
    pub(crate) async fn start_launch(&self, name: &str) -> Result<Reported<'_>, Status> {
        let launch = self.start_launch_as(json!({ "name": name })).await?;
        Ok(self.launch(&launch.id))
    }

    pub(crate) async fn start_launch_as(&self, body: Value) -> Result<Launch, Status> {
        let request = StartLaunchRequest { project: "Shop".to_owned(), body: bytes(&body) };
        Ok(self.launch_service().start_launch(self.user.call(request)).await?.into_inner())
    }

    /// Returns the launch with this id, which may not have started.
    pub(crate) fn launch(&self, id: &str) -> Reported<'_> {
        Reported { world: self, id: id.to_owned() }
    }

    /// Stores the results of all launches as if nothing had been reported for long.
    pub(crate) async fn close_launches(&self) -> anyhow::Result<()> {
        self.close_launches_with(&self.launches).await
    }

    /// Does the same with the launches of a replica.
    pub(crate) async fn close_launches_with(&self, launches: &Launches) -> anyhow::Result<()> {
        self.change("update launch set due_at = now() where due_at is not null").await?;
        Ok(launches.round().await?)
    }

    /// Returns the launches of a replica that has not received any request.
    pub(crate) fn launches_of_replica(&self) -> anyhow::Result<Launches> {
        let catalog = grpc::connect(&self.catalog_url)?;
        let console = ConsoleLinks::new(&self.artifact_config.public, true);
        let (queue, artifacts) = (self.queue.clone(), self.artifacts.clone());
        let shares = Shares::new(8);
        let (_, launches) = assay_execution::services(
            &self.db, &shares, catalog, queue, LEASES, artifacts, console,
        );
        Ok(launches)
    }

    /// Removes the requests of launches as if they had ended long ago.
    pub(crate) async fn forget_requests(&self) -> anyhow::Result<()> {
        self.change("update launch set kept_until = now() where kept_until is not null").await?;
        Ok(self.launches.round().await?)
    }

    /// Merges launches, and returns the id of the execution.
    pub(crate) async fn merge(&self, ids: &[&str]) -> Result<String, Status> {
        self.merge_as(None, ids).await
    }

    /// Merges launches into one with an id.
    pub(crate) async fn merge_as(&self, id: Option<&str>, ids: &[&str]) -> Result<String, Status> {
        let ids = ids.iter().map(|id| (*id).to_owned()).collect();
        let find = FindLaunchesRequest { ids, numbers: Vec::new() };
        let found = self.launch_service().find_launches(self.user.call(find)).await?.into_inner();
        let numbers: Vec<i64> = found.launches.iter().map(|launch| launch.number).collect();
        let body = bytes(&json!({ "name": "Merged", "uuid": id, "launches": numbers }));
        let merge = MergeLaunchesRequest { project: "Shop".to_owned(), body };
        let merged = self.launch_service().merge_launches(self.user.call(merge)).await?;
        Ok(execution_of(merged.into_inner()))
    }
}

impl Reported<'_> {
    async fn add(
        &self,
        kind: LaunchEntryKind,
        item_id: Option<&str>,
        mut body: Value,
    ) -> Result<String, Status> {
        body["launchUuid"] = json!(self.id);
        let item_id = item_id.map(str::to_owned);
        let request = AddLaunchEntryRequest { kind: kind.into(), item_id, body: bytes(&body) };
        let world = self.world;
        let added = world.launch_service().add_launch_entry(world.user.call(request)).await?;
        Ok(added.into_inner().id)
    }

    /// Starts an item, a test unless its fields say otherwise, and returns its id.
    pub(crate) async fn item(
        &self,
        parent: Option<&str>,
        name: &str,
        fields: Value,
    ) -> Result<String, Status> {
        let mut body = json!({ "name": name, "type": "STEP", "startTime": 1_795_350_468_038_i64 });
        body.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        self.add(LaunchEntryKind::Start, parent, body).await
    }

    pub(crate) async fn finish_item(&self, id: &str, status: &str) -> Result<(), Status> {
        let body = json!({ "status": status, "endTime": "1795350469038" });
        self.finish_item_with(id, body).await
    }

    pub(crate) async fn finish_item_with(&self, id: &str, body: Value) -> Result<(), Status> {
        self.add(LaunchEntryKind::Finish, Some(id), body).await.map(drop)
    }

    /// Starts and finishes a test.
    pub(crate) async fn test(&self, name: &str, status: &str) -> Result<String, Status> {
        let id = self.item(None, name, json!({})).await?;
        self.finish_item(&id, status).await?;
        Ok(id)
    }

    pub(crate) async fn log(&self, item: &str, level: &str, message: &str) -> Result<(), Status> {
        self.log_with(item, json!({ "level": level, "message": message })).await
    }

    pub(crate) async fn log_with(&self, item: &str, mut body: Value) -> Result<(), Status> {
        body["itemUuid"] = json!(item);
        self.add(LaunchEntryKind::Log, None, body).await.map(drop)
    }

    /// Logs a file to an item, in a form.
    pub(crate) async fn file(&self, item: &str, name: &str, text: &str) -> Result<(), Status> {
        let log = json!([{
            "launchUuid": self.id, "itemUuid": item, "level": "INFO", "message": "a file",
            "file": { "name": name },
        }]);
        let part = |name: &str, is_attachment, chunk: Bytes| AddLaunchLogsRequest {
            file: Some(FormFile {
                name: name.to_owned(),
                is_attachment,
                content_type: "text/plain".to_owned(),
            }),
            chunk,
            last: is_attachment,
        };
        let parts = [
            part("json_request_part", false, bytes(&log)),
            part(name, true, Bytes::copy_from_slice(text.as_bytes())),
        ];
        let world = self.world;
        world.launch_service().add_launch_logs(world.user.call(stream::iter(parts))).await?;
        Ok(())
    }

    /// Finishes the launch, and returns the id of its execution.
    pub(crate) async fn finish(&self) -> Result<String, Status> {
        let request = FinishLaunchRequest { launch_id: self.id.clone(), ..Default::default() };
        let world = self.world;
        let launch = world.launch_service().finish_launch(world.user.call(request)).await?;
        Ok(execution_of(launch.into_inner()))
    }
}

fn execution_of(launch: Launch) -> String {
    launch.link.unwrap_or_default().rsplit('/').next().unwrap_or_default().to_owned()
}

fn bytes(body: &Value) -> Bytes {
    body.to_string().into()
}
