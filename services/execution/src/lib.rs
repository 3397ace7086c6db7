//! The execution service: executions of test sets, their results, test reports, instances,
//! artifacts and statistics, and the work of engines.

mod artifact;
mod automation;
mod backtest;
mod catalog;
mod cause_rule;
mod console_link;
mod debug;
mod deletion;
mod engine;
mod execution;
mod execution_time;
mod expiry;
mod failure;
mod incident;
mod insight;
mod known_failure;
mod limits;
mod live_log;
mod metrics;
mod monitor;

mod parent;
mod period;
mod pool;
mod queue;
mod quota;
mod reconciler;
mod reportportal;
mod restriction;
mod result;
mod retention;
mod share_link;
mod signal;
mod statistics;
mod test_case_state;
mod test_report;
mod testrail;
mod verify;
mod waiting;

use std::net::SocketAddr;

use assay_auth::{Verifier, guard};
use assay_database::{Database, DatabaseConfig};
use assay_events::{
    Consumer, EVENT, EventType, LostDeletions, Nats, NatsConfig, Owner, RecordKind, Relay, Stream,
};
use assay_fair::Shares;
use assay_proto::execution::{
    artifact_service_server::ArtifactServiceServer,
    automation_service_server::AutomationServiceServer,
    backtest_service_server::BacktestServiceServer,
    cause_rule_service_server::CauseRuleServiceServer, debug_service_server::DebugServiceServer,
    engine_service_server::EngineServiceServer, execution_service_server::ExecutionServiceServer,
    execution_time_service_server::ExecutionTimeServiceServer,
    failure_service_server::FailureServiceServer, incident_service_server::IncidentServiceServer,
    insight_service_server::InsightServiceServer,
    known_failure_service_server::KnownFailureServiceServer,
    launch_service_server::LaunchServiceServer, live_log_service_server::LiveLogServiceServer,
    metrics_service_server::MetricsServiceServer, monitor_service_server::MonitorServiceServer,
    pool_service_server::PoolServiceServer, result_service_server::ResultServiceServer,
    run_service_server::RunServiceServer, share_link_service_server::ShareLinkServiceServer,
    shared_execution_service_server::SharedExecutionServiceServer,
    statistics_service_server::StatisticsServiceServer,
    test_case_state_service_server::TestCaseStateServiceServer,
    test_report_service_server::TestReportServiceServer,
};
use assay_records::Action;
use assay_rpc::grpc::{self, Channel};
use assay_runtime::Runtime;
use assay_work::{Work, watch};
use sqlx::{PgPool, migrate::Migrator};
use tokio::net::TcpListener;
use tonic::service::Routes;

pub use self::{
    artifact::{ArtifactConfig, Artifacts, unrecorded as unrecorded_files},
    cause_rule::derive_changed,
    console_link::ConsoleLinks,
    deletion::{
        Deletions,
        lost::{CUSTOMERS as LIVE_CUSTOMERS, PROJECTS as LIVE_PROJECTS},
        purge_deleted,
    },
    engine::length::QueueMetrics,
    execution_time::count_execution_times,
    expiry::publish_expired,
    incident::seek_incidents,
    insight::roll_up,
    live_log::seal_logs,
    monitor::evaluation::evaluate_monitors,
    pool::reseal,
    quota::{Quota, QuotaConfig, Usage, list as list_usage},
    reportportal::Launches,
    retention::{compare_retentions, enforce_retention, lock_retentions},
    verify::{
        compare_customers, compare_deletions, deleted_customers, deleted_projects, deleted_records,
        executed_cases, executions_of, lock_customers, rebuild, reports_of, verify,
    },
    waiting::publish_waiting,
};
use self::{
    automation::AutomationService,
    backtest::BacktestService,
    catalog::Catalog,
    cause_rule::CauseRuleService,
    debug::DebugService,
    engine::EngineService,
    execution::ExecutionService,
    execution_time::ExecutionTimeService,
    failure::FailureService,
    incident::IncidentService,
    insight::InsightService,
    known_failure::KnownFailureService,
    limits::IngestLimits,
    live_log::LiveLogService,
    metrics::MetricsService,
    monitor::MonitorService,
    pool::PoolService,
    result::ResultService,
    share_link::{ShareLinkService, SharedExecutionService},
    statistics::StatisticsService,
    test_case_state::TestCaseStateService,
    test_report::TestReportService,
    testrail::RunService,
};
pub use assay_ledger::{removal::age as age_of_removals, time_limits::TimeLimits};
pub use assay_storage::FileStoreConfig;

pub use self::{
    queue::Queue,
    reconciler::{Reconciler, age as age_of_reconciliation},
};

/// Settings of the service.
#[derive(clap::Args, Clone, Debug)]
pub struct Config {
    #[command(flatten)]
    pub database: DatabaseConfig,
    #[command(flatten)]
    pub nats: NatsConfig,
    #[command(flatten)]
    pub artifacts: ArtifactConfig,
    /// Address and port of the gRPC server
    #[arg(long, env = "ASSAY_GRPC_LISTEN", default_value = "127.0.0.1:50053")]
    pub grpc_listen: SocketAddr,
    /// URL of the identity service
    #[arg(long, env = "ASSAY_IDENTITY_URL", default_value = "http://127.0.0.1:50051")]
    pub identity_url: String,
    /// URL of the catalog service
    #[arg(long, env = "ASSAY_CATALOG_URL", default_value = "http://127.0.0.1:50052")]
    pub catalog_url: String,
    #[command(flatten)]
    pub leases: TimeLimits,
    #[command(flatten)]
    pub quota: QuotaConfig,
    #[command(flatten)]
    pub queue_metrics: QueueMetrics,
    /// Whether gateways serve the console; without it, results have no links to its pages
    #[arg(long, env = "ASSAY_CONSOLE", default_value_t = true, action = clap::ArgAction::Set)]
    pub console: bool,
}

/// The kinds of work that the service does in the background.
pub const WORK: &[Work] = &[
    EVENT,
    reportportal::LAUNCH,
    insight::INSIGHT,
    execution_time::EXECUTION_TIME,
    incident::INCIDENT,
    cause_rule::CAUSES,
    monitor::evaluation::MONITOR,
    deletion::PURGE,
];

/// Returns the migrations of the database.
pub fn migrations() -> Migrator {
    assay_events::migrations(&sqlx::migrate!())
}

/// Starts the service, and returns the address on which it listens.
pub async fn start(runtime: &Runtime, config: Config) -> anyhow::Result<SocketAddr> {
    let identity = grpc::connect_from(runtime, &config.identity_url)?;
    let catalog = grpc::connect_from(runtime, &config.catalog_url)?;
    let database = Database::open(runtime, &config.database, migrations())?;
    let nats = Nats::connect(&config.nats, runtime.name()).await?;
    database.watch_reachability(runtime, nats.client());
    Relay::start(runtime, &database, &nats, Stream::of("execution"));

    let retention =
        Consumer::new("execution", Stream::of("catalog")).only(EventType::RetentionSet.noun());
    retention.start(runtime, &database, &nats, retention::Reactions);
    let projects =
        Consumer::new("execution-projects", Stream::of("catalog")).only_action(Action::Deleted);
    let lost = LostDeletions::new(Owner::Catalog(catalog.clone()), LIVE_PROJECTS);
    projects.notify_of_loss(lost.signal()).start(runtime, &database, &nats, Deletions);
    lost.start(runtime, &database, Deletions);
    let customers = Consumer::new("execution-customers", Stream::of("identity"))
        .only(RecordKind::Customer.noun());
    let lost = LostDeletions::new(Owner::Identity(identity.clone()), LIVE_CUSTOMERS);
    customers.notify_of_loss(lost.signal()).start(runtime, &database, &nats, Deletions);
    lost.start(runtime, &database, Deletions);
    let quota = Quota::new(database.pool(), config.quota);
    quota::spawn(runtime, &database, &quota);
    let artifacts = Artifacts::open(runtime, database.pool(), &config.artifacts, quota)?;
    let console = ConsoleLinks::new(&config.artifacts.public, config.console);
    retention::spawn(runtime, &database, &artifacts);
    insight::spawn(runtime, &database);
    execution_time::spawn(runtime, &database);
    cause_rule::spawn(runtime, &database);
    monitor::spawn(runtime, &database);
    incident::spawn(runtime, &database);
    watch(runtime, &database, WORK);
    age_of_removals().spawn(runtime, &database);
    age_of_reconciliation().spawn(runtime, &database);
    expiry::spawn(runtime, &database);
    waiting::spawn(runtime, &database, config.leases);
    deletion::spawn(runtime, &database, &artifacts);
    live_log::spawn(runtime, &database, &artifacts);
    let queue = Queue::connect(runtime, nats.client().clone());
    Reconciler::new(database.pool(), &queue, config.leases).spawn(runtime, &database);
    queue.spawn(runtime, &database);
    engine::length::spawn(runtime, &database, config.queue_metrics);
    let (db, shares) = (database.pool(), database.shares());
    let (services, launches) =
        services(db, shares, catalog, queue, config.leases, artifacts, console);
    launches.spawn(runtime, &database);
    let verifier = Verifier::watch_with_nats(runtime, identity, nats.client().clone());
    let app = guard(services, verifier, shares);
    let listener = TcpListener::bind(config.grpc_listen).await?;
    grpc::serve(runtime, listener, app, assay_proto::DESCRIPTORS)
}

/// Returns the gRPC services, and the launches, whose task the caller runs. The services must be
/// served behind [`guard`] with the same shares of the database.
pub fn services(
    db: &PgPool,
    shares: &Shares,
    catalog: Channel,
    queue: Queue,
    leases: TimeLimits,
    artifacts: Artifacts,
    console: ConsoleLinks,
) -> (Routes, Launches) {
    let (catalog, limits) = (Catalog::new(catalog), IngestLimits::new(shares, &artifacts.quota));
    let statistics = StatisticsService { db: db.clone(), catalog: catalog.clone() };
    let reports = TestReportService::new(db.clone(), artifacts.clone());
    let executions = ExecutionService {
        db: db.clone(),
        catalog: catalog.clone(),
        queue: queue.clone(),
        limits: limits.clone(),
        settings: leases,
        console: console.clone(),
    };
    let results = ResultService {
        db: db.clone(),
        catalog: catalog.clone(),
        limits: limits.clone(),
        artifacts: artifacts.clone(),
        console: console.clone(),
    };
    let shared_executions = SharedExecutionService {
        db: db.clone(),
        shares: shares.clone(),
        artifacts: artifacts.clone(),
        console: console.clone(),
    };
    let share_links = ShareLinkService { db: db.clone(), console };
    let runs = RunService { db: db.clone(), results: results.clone() };
    let launches = Launches::new(executions.clone(), results.clone(), shares);
    let known_failures = KnownFailureService { db: db.clone(), catalog: catalog.clone() };
    let cause_rules = CauseRuleService { db: db.clone(), catalog: catalog.clone() };
    let case_states = TestCaseStateService { db: db.clone(), catalog: catalog.clone() };
    let monitors = MonitorService { db: db.clone(), catalog: catalog.clone() };
    let backtests = BacktestService::new(db, shares, &catalog);
    let incidents = IncidentService { db: db.clone(), catalog: catalog.clone() };
    let insights = InsightService { db: db.clone(), catalog: catalog.clone() };
    let execution_times = ExecutionTimeService { db: db.clone() };
    let metrics = MetricsService { db: db.clone(), catalog: catalog.clone() };
    let live_logs = LiveLogService { db: db.clone(), queue: queue.clone(), limits: limits.clone() };
    let seal = artifacts.seal.clone();
    let pools = PoolService { db: db.clone(), catalog: catalog.clone(), seal: seal.clone() };
    let automation =
        AutomationService { db: db.clone(), catalog, queue, settings: leases, limits, seal };
    let services = Routes::new(ExecutionServiceServer::new(executions))
        .add_service(ResultServiceServer::new(results))
        .add_service(TestReportServiceServer::new(reports))
        .add_service(AutomationServiceServer::new(automation))
        .add_service(LiveLogServiceServer::new(live_logs))
        .add_service(EngineServiceServer::new(EngineService { db: db.clone(), settings: leases }))
        .add_service(ArtifactServiceServer::new(artifacts))
        .add_service(StatisticsServiceServer::new(statistics))
        .add_service(FailureServiceServer::new(FailureService { db: db.clone() }))
        .add_service(InsightServiceServer::new(insights))
        .add_service(ExecutionTimeServiceServer::new(execution_times))
        .add_service(IncidentServiceServer::new(incidents))
        .add_service(BacktestServiceServer::new(backtests))
        .add_service(KnownFailureServiceServer::new(known_failures))
        .add_service(CauseRuleServiceServer::new(cause_rules))
        .add_service(TestCaseStateServiceServer::new(case_states))
        .add_service(MonitorServiceServer::new(monitors))
        .add_service(PoolServiceServer::new(pools))
        .add_service(ShareLinkServiceServer::new(share_links))
        .add_service(SharedExecutionServiceServer::new(shared_executions))
        .add_service(MetricsServiceServer::new(metrics))
        .add_service(RunServiceServer::new(runs))
        .add_service(LaunchServiceServer::new(launches.clone()))
        .add_service(DebugServiceServer::new(DebugService { db: db.clone() }));
    (services, launches)
}
