//! The catalog service: projects with their test cases, test plans, test sets, subjects and environments,
//! the snapshots that executions take of them, and the projections of results onto them.

mod automation;
mod deletion;
mod environment;
mod event;
mod favorite;
mod file;
mod filter;
mod import;
mod lookup;
mod opening;
mod project;
mod purge;
pub mod reactions;
mod records;
mod secrets;
mod snapshot;
mod subject;
mod test_case;
mod test_plan;
mod test_set;
mod verify;

use std::net::SocketAddr;

use anyhow::Context;
use assay_auth::{Seal, SealConfig, Verifier, guard};
use assay_database::{Database, DatabaseConfig};
use assay_events::{
    Consumer, EVENT, LostDeletions, Nats, NatsConfig, Owner, RecordKind, Relay, Stream,
};
use assay_fair::Shares;
use assay_proto::{
    DESCRIPTORS,
    catalog::{
        automation_service_server::AutomationServiceServer,
        environment_service_server::EnvironmentServiceServer,
        favorite_service_server::FavoriteServiceServer, file_service_server::FileServiceServer,
        import_service_server::ImportServiceServer, lookup_service_server::LookupServiceServer,
        project_service_server::ProjectServiceServer,
        snapshot_service_server::SnapshotServiceServer,
        subject_service_server::SubjectServiceServer,
        test_case_service_server::TestCaseServiceServer,
        test_plan_service_server::TestPlanServiceServer,
        test_set_service_server::TestSetServiceServer,
    },
};
use assay_rpc::grpc;
use assay_runtime::Runtime;
use assay_storage::FileStoreConfig;
use assay_work::{Work, watch};
use sqlx::{PgPool, migrate::Migrator};
use tokio::net::TcpListener;
use tonic::service::Routes;

use self::{
    automation::AutomationService, environment::EnvironmentService, favorite::FavoriteService,
    import::ImportService, lookup::LookupService, project::ProjectService, reactions::Reactions,
    secrets::Secrets, snapshot::SnapshotService, subject::SubjectService,
    test_case::TestCaseService, test_plan::TestPlanService, test_set::TestSetService,
};
pub use self::{
    deletion::{LIVE_CUSTOMERS, delete_customer},
    file::{FileConfig, Files, unrecorded as unrecorded_files},
    opening::Openings,
    purge::purge,
    secrets::reseal,
    verify::{
        Executed, Source, Wrong, compare_appliances, deletions, find_projects, find_restored,
        lock_appliances, retentions, verify,
    },
};

/// Maximum size of a message with the test cases of a set, in bytes. It fits the ids of all test cases
/// in a body of 32 MiB.
const LARGEST_SET: usize = 40 << 20;

/// The settings of the service.
#[derive(clap::Args, Clone, Debug)]
pub struct Config {
    #[command(flatten)]
    pub database: DatabaseConfig,
    #[command(flatten)]
    pub nats: NatsConfig,
    #[command(flatten)]
    pub seal: SealConfig,
    #[command(flatten)]
    pub file_store: FileStoreConfig,
    #[command(flatten)]
    pub files: FileConfig,
    /// Address and port of the gRPC server
    #[arg(long, env = "ASSAY_GRPC_LISTEN", default_value = "127.0.0.1:50052")]
    pub grpc_listen: SocketAddr,
    /// URL of the identity service
    #[arg(long, env = "ASSAY_IDENTITY_URL", default_value = "http://127.0.0.1:50051")]
    pub identity_url: String,
}

/// The kinds of work that the service does in the background.
pub const WORK: &[Work] = &[EVENT, purge::PURGE];

/// The schema of the service's database.
pub fn migrations() -> Migrator {
    assay_events::migrations(&sqlx::migrate!())
}

/// Starts the service and returns the address of its gRPC interface. The service is ready when its
/// database is migrated and the keys of identity are known.
pub async fn start(runtime: &Runtime, config: Config) -> anyhow::Result<SocketAddr> {
    let seal = Seal::new(&config.seal)?;
    let identity =
        grpc::connect_from(runtime, &config.identity_url).context("ASSAY_IDENTITY_URL")?;
    let database = Database::open(runtime, &config.database, migrations())?;
    let nats = Nats::connect(&config.nats, runtime.name()).await?;
    database.watch_reachability(runtime, nats.client());
    Relay::start(runtime, &database, &nats, Stream::of("catalog"));
    Consumer::new("catalog", Stream::of("execution")).start(runtime, &database, &nats, Reactions);
    let customers =
        Consumer::new("catalog", Stream::of("identity")).only(RecordKind::Customer.noun());
    let lost = LostDeletions::new(Owner::Identity(identity.clone()), deletion::LIVE_CUSTOMERS);
    customers.notify_of_loss(lost.signal()).start(runtime, &database, &nats, reactions::Customers);
    lost.start(runtime, &database, reactions::Customers);
    purge::spawn(runtime, &database);
    watch(runtime, &database, WORK);

    let verifier = Verifier::watch_with_nats(runtime, identity, nats.client().clone());
    let openings = Openings::start(runtime, database.pool().clone(), opening::WRITE_INTERVAL);
    let files = Files::open(runtime, database.pool(), &config.file_store, config.files)?;
    files.spawn(runtime, &database);
    let services = services(database.pool(), database.shares(), seal, openings, files);
    let app = guard(services, verifier, database.shares());
    let listener = TcpListener::bind(config.grpc_listen)
        .await
        .with_context(|| format!("cannot listen on {}", config.grpc_listen))?;
    grpc::serve(runtime, listener, app, DESCRIPTORS)
}

/// Returns the gRPC services, which the caller puts behind a guard.
pub fn services(
    db: &PgPool,
    shares: &Shares,
    seal: Seal,
    openings: Openings,
    files: Files,
) -> Routes {
    let (db, secrets) = (db.clone(), Secrets::new(seal));
    let favorites = FavoriteService { db: db.clone() };
    let imports = ImportService::new(db.clone(), secrets.clone());
    let projects = ProjectService { db: db.clone(), openings: openings.clone() };
    let cases = TestCaseService::new(db.clone(), shares, openings.clone());
    let plans = TestPlanService { db: db.clone(), secrets: secrets.clone() };
    let sets = TestSetService { db: db.clone(), openings };
    let subjects = SubjectService { db: db.clone(), secrets: secrets.clone() };
    let environments = EnvironmentService { db: db.clone(), secrets: secrets.clone() };
    let automation =
        AutomationService { db: db.clone(), secrets: secrets.clone(), files: files.clone() };
    let lookups = LookupService { db: db.clone() };
    let snapshots = SnapshotService::new(db, secrets);
    Routes::new(ProjectServiceServer::new(projects))
        .add_service(FavoriteServiceServer::new(favorites))
        .add_service(FileServiceServer::new(files))
        .add_service(ImportServiceServer::new(imports))
        .add_service(TestCaseServiceServer::new(cases))
        .add_service(TestPlanServiceServer::new(plans))
        .add_service(TestSetServiceServer::new(sets).max_decoding_message_size(LARGEST_SET))
        .add_service(SubjectServiceServer::new(subjects))
        .add_service(EnvironmentServiceServer::new(environments))
        .add_service(SnapshotServiceServer::new(snapshots))
        .add_service(LookupServiceServer::new(lookups))
        .add_service(AutomationServiceServer::new(automation))
}
