//! A running execution service and catalog, and calls of both.

mod catalog;
mod engine;
mod execution;
mod launch;
mod result;
mod run;
mod server;
mod test_report;

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, Result};
use assay_auth::{Seal, SealConfig, Verifier, guard, new_seal_key};
use assay_execution::{
    ArtifactConfig, Artifacts, ConsoleLinks, FileStoreConfig, Launches, Queue, Quota, QuotaConfig,
    Reconciler, TimeLimits,
};
use assay_fair::Shares;
use assay_proto::{
    DESCRIPTORS,
    execution::{
        cause_rule_service_client::CauseRuleServiceClient,
        debug_service_client::DebugServiceClient, failure_service_client::FailureServiceClient,
        known_failure_service_client::KnownFailureServiceClient,
        statistics_service_client::StatisticsServiceClient,
    },
};
use assay_rpc::grpc::{self, Channel};
use assay_runtime::{PublicUrl, Runtime};
use assay_testkit::{TestDatabase, TestKeys, TestUser, Wire, test_dir};
use serde_json::Value;
use sqlx::PgPool;
use tokio::net::TcpListener;
use tonic::{Code, Status, service::Routes};
use tonic_types::StatusExt;
use uuid::Uuid;

pub(crate) use self::{
    engine::{Engine, instance, now},
    launch::Reported,
    server::Server,
};

/// Permissions of users in these tests.
const PERMISSIONS: &str = "Read, Write, Execute, Automation";

const LEASES: TimeLimits = TimeLimits {
    lease_seconds: 60,
    lease_losses: 3,
    test_minutes: 360,
    execution_hours: 168,
    grace_seconds: 900,
    queue_seconds: 300,
};

/// Services with databases of their own, one project and one empty test set.
pub(crate) struct World {
    keys: TestKeys,
    runtime: Runtime,
    pub(crate) user: TestUser,
    pub(crate) db: PgPool,
    folder: PathBuf,
    pub(crate) artifact_config: ArtifactConfig,
    artifacts: Artifacts,
    quota: QuotaConfig,
    catalog_db: PgPool,
    /// The URLs of the service's database and of the catalog.
    pub(crate) database_url: String,
    pub(crate) catalog_url: String,
    catalog: Channel,
    /// Connection between the service and the catalog, which tests can cut.
    pub(crate) wire: Wire,
    pub(crate) execution: Channel,
    reconciler: Reconciler,
    pub(crate) launches: Launches,
    pub(crate) queue: Queue,
    pub(crate) project: String,
    pub(crate) set: String,
}

impl World {
    pub(crate) async fn new() -> Result<Self> {
        Self::with_quota(QuotaConfig::default()).await
    }

    /// Starts the services with limits of what customers may leave behind.
    pub(crate) async fn with_quota(quota: QuotaConfig) -> Result<Self> {
        let keys = TestKeys::generate();
        let runtime = Runtime::new("test");
        let database = TestDatabase::create("catalog", &assay_catalog::migrations()).await?;
        let seal = Seal::new(&SealConfig { encryption_keys: new_seal_key("test")? })?;
        let catalog_db = PgPool::connect_with(database.options).await?;
        let interval = Duration::from_secs(1);
        let openings = assay_catalog::Openings::start(&runtime, catalog_db.clone(), interval);
        let files = FileStoreConfig::folder(&test_dir()?.join(Uuid::now_v7().to_string()));
        let limits = assay_catalog::FileConfig::default();
        let files = assay_catalog::Files::open(&runtime, &catalog_db, &files, limits)?;
        let services = assay_catalog::services(&catalog_db, &Shares::new(8), seal, openings, files);
        let address = serve(&runtime, &keys, services, &Shares::new(8)).await?;
        let catalog_url = format!("http://{address}");
        let catalog = grpc::connect(&catalog_url)?;
        let wire = Wire::to(address).await?;

        let database = TestDatabase::create("execution", &assay_execution::migrations()).await?;
        let db = PgPool::connect_with(database.options).await?;
        let folder = test_dir()?.join(Uuid::now_v7().to_string());
        let artifact_config = artifacts(&folder)?;
        let artifacts = Artifacts::open(&runtime, &db, &artifact_config, Quota::new(&db, quota))?;
        let queue = Queue::local(&runtime);
        let shares = Shares::new(8);
        let (services, launches) = assay_execution::services(
            &db,
            &shares,
            grpc::connect(&format!("http://{}", wire.address()))?,
            queue.clone(),
            LEASES,
            artifacts.clone(),
            ConsoleLinks::new(&artifact_config.public, true),
        );
        let address = serve(&runtime, &keys, services, &shares).await?;
        let execution = grpc::connect(&format!("http://{address}"))?;
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
            quota,
            catalog_db,
            database_url: database.url,
            catalog_url,
            catalog,
            wire,
            execution,
            reconciler,
            launches,
            queue,
            project,
            set,
        };
        (world.project, world.set) = world.project_with_set().await?;
        Ok(world)
    }

    /// Returns the verifier of tokens for another server.
    pub(crate) fn verifier(&self) -> Verifier {
        self.keys.verifier()
    }

    /// Returns a user of another customer.
    pub(crate) async fn stranger(&self) -> TestUser {
        self.keys.user(PERMISSIONS).await
    }

    /// Returns another user of the same customer.
    pub(crate) async fn colleague(&self, permissions: &str) -> TestUser {
        self.keys.user_of(self.user.customer, permissions).await
    }

    /// Returns a user of another customer, with these permissions.
    pub(crate) async fn stranger_who(&self, permissions: &str) -> TestUser {
        self.keys.user(permissions).await
    }

    pub(crate) fn statistics(&self) -> StatisticsServiceClient<Channel> {
        StatisticsServiceClient::new(self.execution.clone())
    }

    pub(crate) fn failures(&self) -> FailureServiceClient<Channel> {
        FailureServiceClient::new(self.execution.clone())
    }

    pub(crate) fn known_failures(&self) -> KnownFailureServiceClient<Channel> {
        KnownFailureServiceClient::new(self.execution.clone())
    }

    pub(crate) fn cause_rules(&self) -> CauseRuleServiceClient<Channel> {
        CauseRuleServiceClient::new(self.execution.clone())
    }

    pub(crate) fn debug(&self) -> DebugServiceClient<Channel> {
        DebugServiceClient::new(self.execution.clone())
    }

    pub(crate) fn catalog(&self) -> Channel {
        self.catalog.clone()
    }

    pub(crate) fn catalog_db(&self) -> &PgPool {
        &self.catalog_db
    }

    /// Returns the number of fields that differ from the state derived from results.
    pub(crate) async fn differences(&self) -> Result<u64> {
        let (_, differences) =
            assay_execution::verify(&self.db, |difference| println!("{difference}")).await?;
        Ok(differences)
    }

    /// Runs the reconciler once.
    pub(crate) async fn reconcile(&self) -> Result<()> {
        Ok(self.reconciler.round().await?)
    }

    /// Makes the logs of ended leases artifacts.
    pub(crate) async fn seal_logs(&self) -> Result<()> {
        Ok(assay_execution::seal_logs(&self.db, &self.artifacts).await?)
    }

    /// Executes a statement in the database of the service, such as one that expires leases.
    pub(crate) async fn change(&self, statement: &'static str) -> Result<()> {
        sqlx::query(statement).execute(&self.db).await?;
        Ok(())
    }

    /// Starts the shutdown of the services.
    pub(crate) fn stop(&self) {
        self.runtime.stopping().cancel();
    }

    /// Returns the events in the outbox in order, each as `noun.action` and its data.
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

    /// Returns the kinds of records whose secrets the catalog has disclosed, in alphabetical order.
    pub(crate) async fn disclosed_secrets(&self) -> Result<Vec<String>> {
        let kinds = sqlx::query_scalar(
            "select data ->> 'Source' from outbox where noun = 'secrets' order by 1",
        );
        Ok(kinds.fetch_all(&self.catalog_db).await?)
    }

    /// Returns a count from the database of the service.
    pub(crate) async fn count(&self, statement: &'static str) -> Result<i64> {
        sqlx::query_scalar(statement).fetch_one(&self.db).await.context(statement)
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.runtime.stopping().cancel();
    }
}

/// Returns settings that store artifacts of at most 32 MiB in this folder.
pub(crate) fn artifacts(folder: &Path) -> Result<ArtifactConfig> {
    let folder = FileStoreConfig::folder(folder);
    let file_store = FileStoreConfig { largest_file_mib: 32, ..folder };
    let seal = SealConfig { encryption_keys: new_seal_key("test")? };
    let public = PublicUrl { public_url: "https://assay.test".parse()? };
    Ok(ArtifactConfig { file_store, seal, public })
}

/// Starts a server and returns its address.
async fn serve(
    runtime: &Runtime,
    keys: &TestKeys,
    services: Routes,
    shares: &Shares,
) -> Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let app = guard(services, keys.verifier(), shares);
    grpc::serve(runtime, listener, app, DESCRIPTORS)
}

/// Returns the code of an error.
pub(crate) fn reason(status: &Status) -> String {
    status.get_error_details().error_info().map(|info| info.reason.clone()).unwrap_or_default()
}

/// Returns the fields that violate a rule.
pub(crate) fn fields(status: &Status) -> Vec<String> {
    assert_eq!(status.code(), Code::InvalidArgument, "{status:?}");
    let details = status.get_error_details();
    let violations = details.bad_request().map(|bad| bad.field_violations.clone());
    violations.unwrap_or_default().into_iter().map(|violation| violation.field).collect()
}
