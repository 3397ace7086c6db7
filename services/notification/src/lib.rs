//! The notification service: stores notifications from clients and from the events of other
//! services, lists and streams them to clients, and publishes them on NATS and to webhooks.

mod client;
mod customer;
mod deletion;
mod delivery;
mod delivery_sender;
mod egress;
mod exchange;
mod filter;
mod format;
mod message;
mod notification;
mod reactions;
mod retention;
mod secret;
mod signal;
mod streams;
mod verify;
mod webhook;

use std::{net::SocketAddr, sync::Arc, time::Duration};

use anyhow::Context;
use assay_auth::{Seal, SealConfig, Verifier, guard};
use assay_database::{Database, DatabaseConfig};
use assay_events::{Consumer, EVENT, LostDeletions, Nats, NatsConfig, Owner, Relay};
use assay_proto::{
    DESCRIPTORS,
    notification::{
        notification_service_server::NotificationServiceServer,
        webhook_service_server::WebhookServiceServer,
    },
};
use assay_rpc::grpc;
use assay_runtime::{Networks, PublicUrl, Runtime};
use assay_work::{Work, watch};
use sqlx::migrate::Migrator;
use tokio::{net::TcpListener, sync::Notify};
use tonic::service::Routes;

use self::{
    client::WebhookClient,
    delivery_sender::Sender,
    egress::EgressPolicy,
    notification::NotificationService,
    reactions::Reactions,
    streams::{NOTIFICATIONS, SOURCES},
    webhook::WebhookService,
};
pub use self::{
    deletion::LIVE_CUSTOMERS, delivery::age as age_of_deliveries, retention::prune,
    signal::NotificationSignal, verify::members, webhook::reseal::reseal,
};

/// Settings of the service.
#[derive(clap::Args, Clone, Debug)]
pub struct Config {
    #[command(flatten)]
    pub database: DatabaseConfig,
    #[command(flatten)]
    pub nats: NatsConfig,
    #[command(flatten)]
    pub seal: SealConfig,
    /// Address and port of the gRPC server
    #[arg(long, env = "ASSAY_GRPC_LISTEN", default_value = "127.0.0.1:50054")]
    pub grpc_listen: SocketAddr,
    /// URL of the identity service
    #[arg(long, env = "ASSAY_IDENTITY_URL", default_value = "http://127.0.0.1:50051")]
    pub identity_url: String,
    #[command(flatten)]
    pub retention: RetentionConfig,
    #[command(flatten)]
    pub webhooks: WebhookConfig,
    #[command(flatten)]
    pub links: LinkConfig,
}

/// Settings of the links in notifications.
#[derive(clap::Args, Clone, Debug)]
pub struct LinkConfig {
    #[command(flatten)]
    pub public: PublicUrl,
    /// Whether gateways serve the console; without it, notifications have no links to its pages
    #[arg(long, env = "ASSAY_CONSOLE", default_value_t = true, action = clap::ArgAction::Set)]
    pub console: bool,
}

/// Settings of stored notifications.
#[derive(clap::Args, Clone, Copy, Debug)]
pub struct RetentionConfig {
    /// Retention of notifications, in days
    #[arg(
        long,
        env = "ASSAY_NOTIFICATION_RETENTION_DAYS",
        default_value_t = 365,
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    pub notification_retention_days: u32,
}

/// Settings of webhooks.
#[derive(clap::Args, Clone, Debug)]
pub struct WebhookConfig {
    /// Networks outside the Internet that webhooks may access, by https or http: addresses or
    /// networks in CIDR notation, separated by commas. None by default, so that webhooks cannot send
    /// requests to hosts that only Assay reaches
    #[arg(long, env = "ASSAY_WEBHOOK_NETWORKS", default_value = "")]
    pub webhook_networks: Networks,
}

/// The kinds of work that the service does in the background.
pub const WORK: &[Work] = &[EVENT, delivery::DELIVERY, deletion::PURGE];

/// Returns the schema of the service's database.
pub fn migrations() -> Migrator {
    assay_events::migrations(&sqlx::migrate!())
}

/// Starts the service and returns the address of its gRPC server. The service is ready when its
/// database is migrated and it has the keys of tokens.
pub async fn start(runtime: &Runtime, config: Config) -> anyhow::Result<SocketAddr> {
    let database = Database::open(runtime, &config.database, migrations())?;
    let identity =
        grpc::connect_from(runtime, &config.identity_url).context("ASSAY_IDENTITY_URL")?;
    let nats = Nats::connect(&config.nats, runtime.name()).await?;
    database.watch_reachability(runtime, nats.client());
    let verifier = Verifier::watch_with_nats(runtime, identity.clone(), nats.client().clone());
    let lost = LostDeletions::new(Owner::Identity(identity), deletion::LIVE_CUSTOMERS);
    exchange_events(runtime, &database, &nats, &config.links, &lost.signal());
    lost.start(runtime, &database, Reactions::new(&config.links));
    watch(runtime, &database, WORK);
    age_of_deliveries().spawn(runtime, &database);
    let age = Duration::from_hours(24) * config.retention.notification_retention_days;
    retention::spawn(runtime, &database, &nats, age);
    let signal = NotificationSignal::subscribe(runtime, nats.client().clone());
    let services = services(runtime, &database, signal, &config.seal, config.webhooks)?;

    let listener = TcpListener::bind(config.grpc_listen)
        .await
        .with_context(|| format!("cannot listen on {}", config.grpc_listen))?;
    grpc::serve(runtime, listener, guard(services, verifier, database.shares()), DESCRIPTORS)
}

/// Returns the gRPC services, to be put behind [`guard`], and starts sending to webhooks.
pub fn services(
    runtime: &Runtime,
    database: &Database,
    signal: NotificationSignal,
    seal: &SealConfig,
    webhooks: WebhookConfig,
) -> anyhow::Result<Routes> {
    let (db, seal) = (database.pool(), Seal::new(seal)?);
    let policy = EgressPolicy::new(webhooks.webhook_networks);
    let client = WebhookClient::new(&policy)?;
    Sender::new(db, &seal, &client, signal.clone()).start(runtime, database);
    let shares = database.shares().clone();
    let notifications = NotificationService::new(db.clone(), shares, signal);
    let webhooks = WebhookService::new(db.clone(), seal, policy, client);
    Ok(Routes::new(NotificationServiceServer::new(notifications))
        .add_service(WebhookServiceServer::new(webhooks)))
}

/// Starts consuming the events of other services and publishing notifications. Notifies if the consumer of a
/// stream is new.
pub fn exchange_events(
    runtime: &Runtime,
    database: &Database,
    nats: &Nats,
    links: &LinkConfig,
    is_lost: &Arc<Notify>,
) {
    let reactions = Reactions::new(links);
    for stream in SOURCES {
        let consumer = Consumer::new("notification", stream).notify_of_loss(is_lost.clone());
        consumer.start(runtime, database, nats, reactions.clone());
    }
    Relay::start(runtime, database, nats, NOTIFICATIONS);
}
