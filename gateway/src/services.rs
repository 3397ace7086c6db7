//! Connections to the services, and their clients.

use std::{num::NonZeroUsize, sync::Arc, thread};

use assay_auth::Verifier;
use assay_fair::Shares;
use assay_proto::{catalog, execution, identity, notification};
use assay_rpc::grpc::{Channel, MESSAGE_LIMIT, connect_for_events, connect_from};
use assay_runtime::{Runtime, nats};
use axum::extract::FromRef;
use tokio_util::sync::CancellationToken;

use crate::{
    admission::FairChannel, config::Config, declared::Declared, document_pools::DocumentPools,
    gathered::CaseCalls,
};

/// Connections to the services, and the verifier of tokens.
pub struct Upstream {
    pub identity: Channel,
    pub catalog: Channel,
    pub execution: Channel,
    pub notification: Channel,
    /// Connections of their own for streams of notifications.
    pub notification_events: Channel,
    pub verifier: Verifier,
    /// Cancelled when the program stops, to end long-lived responses.
    pub stopping: CancellationToken,
    /// Maximum size of a file, in MiB.
    pub largest_file_mib: u32,
}

impl Upstream {
    /// Prepares connections to the services, which open on first use, and starts to follow the keys
    /// and revocations of the identity service.
    pub async fn connect(runtime: &Runtime, config: &Config) -> anyhow::Result<Self> {
        let connect = |url: &str| connect_from(runtime, url);
        let identity = connect(&config.identity_url)?;
        let nats = nats::connect(&config.nats, runtime.name()).await?;
        Ok(Self {
            verifier: Verifier::watch_with_nats(runtime, identity.clone(), nats),
            identity,
            catalog: connect(&config.catalog_url)?,
            execution: connect(&config.execution_url)?,
            notification: connect(&config.notification_url)?,
            notification_events: connect_for_events(runtime, &config.notification_url)?,
            stopping: runtime.stopping(),
            largest_file_mib: config.largest_file_mib,
        })
    }
}

/// The state of the routes, from which handlers extract the clients that they call.
#[derive(Clone)]
pub(crate) struct Services(Arc<Inner>);

struct Inner {
    identity: FairChannel,
    catalog: FairChannel,
    execution: FairChannel,
    notification: FairChannel,
    notification_events: FairChannel,
    case_calls: CaseCalls,
    documents: DocumentPools,
    verifier: Verifier,
    declared: Declared,
    stopping: CancellationToken,
    largest_file_mib: u32,
}

impl Services {
    /// Wraps connections. `concurrency` is the maximum number of concurrent calls to each service.
    pub(crate) fn new(upstream: Upstream, concurrency: usize, declared: Declared) -> Self {
        let Upstream { identity, catalog, execution, notification, notification_events, .. } =
            upstream;
        let processors = thread::available_parallelism().map_or(1, NonZeroUsize::get);
        let processors = Shares::new(processors);
        let catalog = FairChannel::new(catalog, concurrency, &processors);
        Self(Arc::new(Inner {
            identity: FairChannel::new(identity, concurrency, &processors),
            case_calls: CaseCalls::new(&catalog),
            catalog,
            documents: DocumentPools::default(),
            execution: FairChannel::new(execution, concurrency, &processors),
            notification: FairChannel::new(notification, concurrency, &processors),
            notification_events: FairChannel::new(notification_events, concurrency, &processors),
            verifier: upstream.verifier,
            declared,
            stopping: upstream.stopping,
            largest_file_mib: upstream.largest_file_mib,
        }))
    }

    /// Returns the client for streams of notifications.
    pub(crate) fn notification_events(&self) -> Notifications {
        Notifications::from_ref(&self.0.notification_events)
    }

    pub(crate) fn verifier(&self) -> &Verifier {
        &self.0.verifier
    }

    /// Returns the maximum size of a file, in bytes.
    pub(crate) fn largest_file(&self) -> u64 {
        u64::from(self.0.largest_file_mib) << 20
    }

    pub(crate) fn declared(&self) -> &Declared {
        &self.0.declared
    }

    pub(crate) fn documents(&self) -> &DocumentPools {
        &self.0.documents
    }

    pub(crate) fn stopping(&self) -> &CancellationToken {
        &self.0.stopping
    }
}

/// Defines a short name for the client of each service, and extracts it from its channel and from the
/// state of routes.
macro_rules! clients {
    ($($name:ident = $package:ident::$module:ident::$client:ident;)*) => {$(
        pub(crate) type $name = $package::$module::$client<FairChannel>;

        impl FromRef<FairChannel> for $name {
            fn from_ref(channel: &FairChannel) -> Self {
                $package::$module::$client::new(channel.clone())
                    .max_decoding_message_size(MESSAGE_LIMIT)
                    .max_encoding_message_size(MESSAGE_LIMIT)
            }
        }

        impl FromRef<Services> for $name {
            fn from_ref(services: &Services) -> Self {
                Self::from_ref(&services.0.$package)
            }
        }
    )*};
}

impl FromRef<Services> for CaseCalls {
    fn from_ref(services: &Services) -> Self {
        services.0.case_calls.clone()
    }
}

clients! {
    Tokens = identity::token_service_client::TokenServiceClient;
    Customers = identity::customer_service_client::CustomerServiceClient;
    UserGroups = identity::user_group_service_client::UserGroupServiceClient;
    Users = identity::user_service_client::UserServiceClient;
    Settings = identity::user_settings_service_client::UserSettingsServiceClient;
    ApiTokens = identity::api_token_service_client::ApiTokenServiceClient;
    Statements = identity::statement_service_client::StatementServiceClient;
    AuditEntries = identity::audit_service_client::AuditServiceClient;
    Projects = catalog::project_service_client::ProjectServiceClient;
    Favorites = catalog::favorite_service_client::FavoriteServiceClient;
    Imports = catalog::import_service_client::ImportServiceClient;
    TestCases = catalog::test_case_service_client::TestCaseServiceClient;
    TestPlans = catalog::test_plan_service_client::TestPlanServiceClient;
    TestSets = catalog::test_set_service_client::TestSetServiceClient;
    Subjects = catalog::subject_service_client::SubjectServiceClient;
    Environments = catalog::environment_service_client::EnvironmentServiceClient;
    Files = catalog::file_service_client::FileServiceClient;
    AutomationFiles = catalog::automation_service_client::AutomationServiceClient;
    Lookups = catalog::lookup_service_client::LookupServiceClient;
    Executions = execution::execution_service_client::ExecutionServiceClient;
    Results = execution::result_service_client::ResultServiceClient;
    ArtifactFiles = execution::artifact_service_client::ArtifactServiceClient;
    Automation = execution::automation_service_client::AutomationServiceClient;
    Engines = execution::engine_service_client::EngineServiceClient;
    LiveLogs = execution::live_log_service_client::LiveLogServiceClient;
    Failures = execution::failure_service_client::FailureServiceClient;
    Backtests = execution::backtest_service_client::BacktestServiceClient;
    Incidents = execution::incident_service_client::IncidentServiceClient;
    Insights = execution::insight_service_client::InsightServiceClient;
    ExecutionTimes =
        execution::execution_time_service_client::ExecutionTimeServiceClient;
    ShareLinks = execution::share_link_service_client::ShareLinkServiceClient;
    SharedExecutions =
        execution::shared_execution_service_client::SharedExecutionServiceClient;
    KnownFailures = execution::known_failure_service_client::KnownFailureServiceClient;
    CauseRules = execution::cause_rule_service_client::CauseRuleServiceClient;
    TestCaseStates = execution::test_case_state_service_client::TestCaseStateServiceClient;
    Pools = execution::pool_service_client::PoolServiceClient;
    Monitors = execution::monitor_service_client::MonitorServiceClient;
    Metrics = execution::metrics_service_client::MetricsServiceClient;
    Launches = execution::launch_service_client::LaunchServiceClient;
    Runs = execution::run_service_client::RunServiceClient;
    TestReports = execution::test_report_service_client::TestReportServiceClient;
    Statistics = execution::statistics_service_client::StatisticsServiceClient;
    DebugRecords = execution::debug_service_client::DebugServiceClient;
    Notifications = notification::notification_service_client::NotificationServiceClient;
    Webhooks = notification::webhook_service_client::WebhookServiceClient;
}
