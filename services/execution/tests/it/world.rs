//! A running execution service and catalog, and the executions of a test.

mod catalog;
mod engine;
mod server;

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use assay_auth::{Seal, SealConfig, Verifier, guard, new_seal_key};
use assay_execution::{ArtifactConfig, Artifacts, DepotConfig, LeaseSettings, Queue, Reconciler};
use assay_proto::{
    DESCRIPTORS,
    execution::{
        CancelExecutionRequest, CompleteExecutionRequest, Execution, ExecutionMode,
        GetExecutionRequest, GetInstanceRequest, GetTestReportRequest, InstanceEntry,
        ListInstancesRequest, ReportResultsRequest, ReportResultsTarget, ReportedResults,
        StartExecutionInput, StartExecutionRequest, TestReport, UploadArtifactRequest,
        UploadArtifactTarget, UploadResultsRequest, UploadResultsTarget,
        artifact_service_client::ArtifactServiceClient, debug_service_client::DebugServiceClient,
        execution_service_client::ExecutionServiceClient,
        result_service_client::ResultServiceClient,
        statistics_service_client::StatisticsServiceClient,
        test_report_service_client::TestReportServiceClient,
    },
};
use assay_runtime::{Runtime, grpc};
use assay_testkit::{TestDatabase, TestKeys, TestUser, test_dir};
use futures::{TryStreamExt, stream};
use serde_json::Value;
use sqlx::PgPool;
use tokio::net::TcpListener;
use tonic::{Code, Response, Status, Streaming, service::Routes, transport::Channel};
use tonic_types::StatusExt;
use uuid::Uuid;

pub(crate) use self::{
    engine::{Engine, instance, now},
    server::Server,
};

/// What users of these tests may do.
const PERMISSIONS: &str = "Read, Write, Execute, Automation";

/// How long leases last here.
const LEASES: LeaseSettings = LeaseSettings { lease_seconds: 60, lease_losses: 3 };

/// Services of their own, with one project and one empty test set.
pub(crate) struct World {
    keys: TestKeys,
    runtime: Runtime,
    pub(crate) user: TestUser,
    pub(crate) db: PgPool,
    folder: PathBuf,
    pub(crate) artifact_config: ArtifactConfig,
    artifacts: Artifacts,
    catalog_db: PgPool,
    /// The URLs of the service's database and of the catalog.
    pub(crate) database_url: String,
    pub(crate) catalog_url: String,
    catalog: Channel,
    execution: Channel,
    reconciler: Reconciler,
    pub(crate) project: String,
    pub(crate) set: String,
}

impl World {
    pub(crate) async fn new() -> Result<Self> {
        let keys = TestKeys::generate();
        let runtime = Runtime::new("test");
        let database = TestDatabase::create("catalog", &assay_catalog::migrations()).await?;
        let seal = Seal::new(&SealConfig { encryption_keys: new_seal_key("test")? })?;
        let catalog_db = PgPool::connect_with(database.options).await?;
        let openings = assay_catalog::Openings::start(&runtime, catalog_db.clone());
        let services = assay_catalog::services(&catalog_db, seal, openings);
        let catalog_url = serve(&runtime, &keys, services).await?;
        let catalog = grpc::connect(&catalog_url)?;

        let database = TestDatabase::create("execution", &assay_execution::migrations()).await?;
        let db = PgPool::connect_with(database.options).await?;
        let folder = test_dir()?.join(Uuid::now_v7().to_string());
        let artifact_config = artifacts(&folder)?;
        let artifacts = Artifacts::open(&db, &artifact_config)?;
        let queue = Queue::local(&runtime);
        let services = assay_execution::services(
            &db,
            catalog.clone(),
            queue.clone(),
            LEASES,
            artifacts.clone(),
        );
        let execution = grpc::connect(&serve(&runtime, &keys, services).await?)?;
        let reconciler = Reconciler::new(&db, &queue, LEASES);
        let user = keys.user(PERMISSIONS).await;
        let (project, set) = (String::new(), String::new());
        let mut world = Self {
            keys,
            runtime,
            user,
            db,
            folder,
            artifact_config,
            artifacts,
            catalog_db,
            database_url: database.url,
            catalog_url,
            catalog,
            execution,
            reconciler,
            project,
            set,
        };
        (world.project, world.set) = world.project_with_set().await?;
        Ok(world)
    }

    /// What a further server verifies tokens with.
    pub(crate) fn verifier(&self) -> Verifier {
        self.keys.verifier()
    }

    /// Another user of the services, of another customer.
    pub(crate) async fn stranger(&self) -> TestUser {
        self.keys.user(PERMISSIONS).await
    }

    /// Another user of the same customer.
    pub(crate) async fn colleague(&self, permissions: &str) -> TestUser {
        self.keys.user_of(self.user.customer, permissions).await
    }

    /// A user of another customer with these permissions.
    pub(crate) async fn stranger_who(&self, permissions: &str) -> TestUser {
        self.keys.user(permissions).await
    }

    pub(crate) fn statistics(&self) -> StatisticsServiceClient<Channel> {
        StatisticsServiceClient::new(self.execution.clone())
    }

    pub(crate) fn artifacts(&self) -> ArtifactServiceClient<Channel> {
        ArtifactServiceClient::new(self.execution.clone())
    }

    pub(crate) fn artifacts_store(&self) -> &Artifacts {
        &self.artifacts
    }

    /// Uploads a small file.
    pub(crate) async fn keep_file(&self, execution: &str, name: &str) -> Result<(), Status> {
        let target = UploadArtifactTarget {
            project_id: self.project.clone(),
            execution_id: execution.to_owned(),
            name: name.to_owned(),
            content_type: "text/plain".to_owned(),
            ..UploadArtifactTarget::default()
        };
        let file = UploadArtifactRequest { target: Some(target), chunk: "x".into(), last: true };
        self.artifacts().upload_artifact(self.user.call(stream::iter([file]))).await?;
        Ok(())
    }

    /// How many files are kept.
    pub(crate) fn files(&self) -> usize {
        fn count(folder: &Path) -> usize {
            let entries = fs::read_dir(folder).into_iter().flatten().flatten();
            entries.map(|entry| if entry.path().is_dir() { count(&entry.path()) } else { 1 }).sum()
        }
        count(&self.folder)
    }

    pub(crate) fn debug(&self) -> DebugServiceClient<Channel> {
        DebugServiceClient::new(self.execution.clone())
    }

    pub(crate) fn executions(&self) -> ExecutionServiceClient<Channel> {
        ExecutionServiceClient::new(self.execution.clone())
    }

    pub(crate) fn reports(&self) -> TestReportServiceClient<Channel> {
        TestReportServiceClient::new(self.execution.clone())
    }

    pub(crate) fn results(&self) -> ResultServiceClient<Channel> {
        ResultServiceClient::new(self.execution.clone())
    }

    /// How the set is started.
    pub(crate) fn start_request(&self, mode: ExecutionMode) -> StartExecutionRequest {
        let mut input = StartExecutionInput::default();
        input.set_mode(mode);
        StartExecutionRequest {
            project_id: self.project.clone(),
            test_set_id: self.set.clone(),
            execution: Some(input),
            idempotency_key: None,
        }
    }

    /// Starts an External execution of the set.
    pub(crate) async fn start(&self) -> Result<Execution, Status> {
        self.start_by(self.start_request(ExecutionMode::External)).await
    }

    /// Starts an execution of the set that engines run.
    pub(crate) async fn dispatch(&self) -> Result<Execution, Status> {
        self.start_by(self.start_request(ExecutionMode::Dispatch)).await
    }

    pub(crate) async fn start_by(
        &self,
        request: StartExecutionRequest,
    ) -> Result<Execution, Status> {
        whole(self.executions().start_execution(self.user.call(request)).await?).await
    }

    pub(crate) async fn cancel(&self, id: &str) -> Result<(), Status> {
        let request =
            CancelExecutionRequest { project_id: self.project.clone(), id: id.to_owned() };
        self.executions().cancel_execution(self.user.call(request)).await?;
        Ok(())
    }

    /// Has the service look once after what is overdue.
    pub(crate) async fn reconcile(&self) -> Result<()> {
        Ok(self.reconciler.round().await?)
    }

    /// Changes something in the database of the service, such as what time it is there.
    pub(crate) async fn change(&self, statement: &'static str) -> Result<()> {
        sqlx::query(statement).execute(&self.db).await?;
        Ok(())
    }

    /// Has the program stop that the services are in.
    pub(crate) fn stop(&self) {
        self.runtime.stopping().cancel();
    }

    pub(crate) async fn execution(&self, id: &str) -> Result<Execution, Status> {
        let request = GetExecutionRequest { project_id: self.project.clone(), id: id.to_owned() };
        whole(self.executions().get_execution(self.user.call(request)).await?).await
    }

    pub(crate) async fn complete(&self, id: &str) -> Result<Execution, Status> {
        let request =
            CompleteExecutionRequest { project_id: self.project.clone(), id: id.to_owned() };
        whole(self.executions().complete_execution(self.user.call(request)).await?).await
    }

    /// Reports a JSON value.
    pub(crate) async fn report(&self, id: &str, results: Value) -> Result<ReportedResults, Status> {
        self.report_text(id, false, results.to_string()).await
    }

    /// Reports a body, in chunks that cut it anywhere.
    pub(crate) async fn report_text(
        &self,
        id: &str,
        lines: bool,
        body: String,
    ) -> Result<ReportedResults, Status> {
        let target = ReportResultsTarget {
            project_id: self.project.clone(),
            execution_id: id.to_owned(),
            lines,
        };
        let head = ReportResultsRequest { target: Some(target), ..ReportResultsRequest::default() };
        let size = if body.len() > 1 << 20 { 64 << 10 } else { 7 };
        let chunks: Vec<_> = body
            .as_bytes()
            .chunks(size)
            .map(|chunk| ReportResultsRequest {
                chunk: chunk.to_vec().into(),
                ..Default::default()
            })
            .collect();
        let end = ReportResultsRequest { last: true, ..Default::default() };
        let messages = stream::iter([head].into_iter().chain(chunks).chain([end]));
        Ok(self.results().report_results(self.user.call(messages)).await?.into_inner())
    }

    pub(crate) fn upload_target(&self) -> UploadResultsTarget {
        UploadResultsTarget {
            project_id: self.project.clone(),
            test_set_id: self.set.clone(),
            ..UploadResultsTarget::default()
        }
    }

    /// Uploads files.
    pub(crate) async fn upload(&self, files: &[&[u8]]) -> Result<Execution, Status> {
        let mut messages = vec![UploadResultsRequest {
            target: Some(self.upload_target()),
            ..UploadResultsRequest::default()
        }];
        for (number, file) in files.iter().enumerate() {
            for (place, chunk) in file.chunks(60_000).enumerate() {
                messages.push(UploadResultsRequest {
                    target: None,
                    chunk: chunk.to_vec().into(),
                    next_file: number > 0 && place == 0,
                    last: false,
                });
            }
        }
        messages.push(UploadResultsRequest { last: true, ..UploadResultsRequest::default() });
        let request = self.user.call(stream::iter(messages));
        whole(self.results().upload_results(request).await?).await
    }

    pub(crate) async fn test_report(&self, id: &str) -> Result<TestReport, Status> {
        let request = GetTestReportRequest { id: id.to_owned(), ..GetTestReportRequest::default() };
        Ok(self.reports().get_test_report(self.user.call(request)).await?.into_inner())
    }

    pub(crate) async fn instances(
        &self,
        report: &TestReport,
    ) -> Result<Vec<InstanceEntry>, Status> {
        let request = ListInstancesRequest {
            project_id: self.project.clone(),
            test_case_id: report.test_case_id.clone(),
            test_plan_id: report.test_plan_id.clone(),
            test_report_id: report.id.clone(),
            page: None,
        };
        let batches = self.reports().list_instances(self.user.call(request)).await?.into_inner();
        let batches: Vec<_> = batches.try_collect().await?;
        Ok(batches.into_iter().flat_map(|batch| batch.items).collect())
    }

    /// Where an instance is.
    pub(crate) fn instance_path(&self, report: &TestReport, id: &str) -> GetInstanceRequest {
        GetInstanceRequest {
            project_id: self.project.clone(),
            test_case_id: report.test_case_id.clone(),
            test_plan_id: report.test_plan_id.clone(),
            test_report_id: report.id.clone(),
            id: id.to_owned(),
        }
    }

    /// The subjects of the events that were written, from the last `noun` on, in order.
    pub(crate) async fn events(&self) -> Result<Vec<(String, Value)>> {
        let events: Vec<(String, String, Value)> =
            sqlx::query_as("select noun, action, data from outbox order by id")
                .fetch_all(&self.db)
                .await?;
        Ok(events
            .into_iter()
            .map(|(noun, action, data)| (format!("{noun}.{action}"), data))
            .collect())
    }

    /// The kinds of records whose secrets the catalog has told the audit of, in order.
    pub(crate) async fn secrets_seen(&self) -> Result<Vec<String>> {
        let seen = sqlx::query_scalar(
            "select data ->> 'Source' from outbox where noun = 'secrets' order by 1",
        );
        Ok(seen.fetch_all(&self.catalog_db).await?)
    }

    /// A count in the database of the service.
    pub(crate) async fn count(&self, statement: &'static str) -> Result<i64> {
        sqlx::query_scalar(statement).fetch_one(&self.db).await.context(statement)
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.runtime.stopping().cancel();
    }
}

/// Artifacts in this folder.
fn artifacts(folder: &Path) -> Result<ArtifactConfig> {
    let seal = SealConfig { encryption_keys: new_seal_key("test")? };
    Ok(ArtifactConfig::new(DepotConfig::folder(folder), seal, "https://assay.test".parse()?))
}

/// Serves, and says where.
async fn serve(runtime: &Runtime, keys: &TestKeys, services: Routes) -> Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let app = guard(services, keys.verifier());
    let address = grpc::serve(runtime, listener, app, DESCRIPTORS)?;
    Ok(format!("http://{address}"))
}

/// Puts an execution together from its parts.
async fn whole(parts: Response<Streaming<Execution>>) -> Result<Execution, Status> {
    let mut parts = parts.into_inner();
    let mut execution = parts.message().await?.expect("a first part");
    while let Some(part) = parts.message().await? {
        execution.test_reports.extend(part.test_reports);
    }
    Ok(execution)
}

/// The stable name of a fault.
pub(crate) fn reason(status: &Status) -> String {
    status.get_error_details().error_info().map(|info| info.reason.clone()).unwrap_or_default()
}

/// The fields that a call was refused for.
pub(crate) fn fields(status: &Status) -> Vec<String> {
    assert_eq!(status.code(), Code::InvalidArgument, "{status:?}");
    let details = status.get_error_details();
    let violations = details.bad_request().map(|bad| bad.field_violations.clone());
    violations.unwrap_or_default().into_iter().map(|violation| violation.field).collect()
}
