//! What happened: told by clients and by the other services, kept for clients, and published for
//! other systems.

mod deletion;
mod delivery;
mod news;
mod notification;
mod reactions;
mod retention;
mod webhook;

use std::{net::SocketAddr, time::Duration};

use anyhow::Context;
use assay_auth::{Seal, SealConfig, Verifier, guard};
use assay_events::{Consumer, Nats, NatsConfig, Relay, Stream};
use assay_proto::{
    DESCRIPTORS,
    notification::{
        notification_service_server::NotificationServiceServer,
        webhook_service_server::WebhookServiceServer,
    },
};
use assay_runtime::{Database, DatabaseConfig, Networks, Runtime, grpc};
use sqlx::migrate::Migrator;
use tokio::net::TcpListener;
use tonic::service::Routes;

use self::{
    delivery::{Reach, Sender},
    notification::NotificationService,
    reactions::Reactions,
    webhook::WebhookService,
};
pub use self::{news::News, retention::prune, webhook::reseal};

/// Where notifications are published. Nothing of ours consumes it, so that no notification can be
/// the cause of another one.
const PUBLISHED: Stream = Stream::of("notifications");

/// Whose events become notifications.
const HEARD: [Stream; 3] = [Stream::of("catalog"), Stream::of("execution"), Stream::of("identity")];

/// What the service is told.
#[derive(clap::Args, Clone, Debug)]
pub struct Config {
    #[command(flatten)]
    pub database: DatabaseConfig,
    #[command(flatten)]
    pub nats: NatsConfig,
    #[command(flatten)]
    pub seal: SealConfig,
    /// Where gRPC is served
    #[arg(long, env = "ASSAY_GRPC_LISTEN", default_value = "127.0.0.1:50054")]
    pub grpc_listen: SocketAddr,
    /// Where the identity service is, which knows the keys of tokens
    #[arg(long, env = "ASSAY_IDENTITY_URL", default_value = "http://127.0.0.1:50051")]
    pub identity_url: String,
    /// How many days notifications are kept
    #[arg(
        long,
        env = "ASSAY_NOTIFICATION_RETENTION_DAYS",
        default_value_t = 365,
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    pub notification_retention_days: u32,
    #[command(flatten)]
    pub webhooks: WebhookConfig,
}

/// Where webhooks may be.
#[derive(clap::Args, Clone, Debug)]
pub struct WebhookConfig {
    /// The networks besides the Internet that webhooks may be in, by https or http, as addresses or
    /// networks, separated by commas; by default none, so that nobody can have requests sent to what
    /// only Assay can reach
    #[arg(long, env = "ASSAY_WEBHOOK_NETWORKS", default_value = "")]
    pub webhook_networks: Networks,
}

/// The schema of the service's database.
pub fn migrations() -> Migrator {
    assay_events::migrations(&sqlx::migrate!())
}

/// Starts the service, and says where it serves gRPC. It is ready when its database is migrated and
/// the keys of tokens are known.
pub async fn start(runtime: &Runtime, config: Config) -> anyhow::Result<SocketAddr> {
    let database = Database::open(runtime, &config.database, migrations())?;
    let identity =
        grpc::connect_with(runtime.tls(), &config.identity_url).context("ASSAY_IDENTITY_URL")?;
    let nats = Nats::connect(&config.nats, runtime.name()).await?;
    let verifier = Verifier::watch_with_nats(runtime, identity, nats.client().clone());
    exchange_events(runtime, &database, &nats);
    let age = Duration::from_hours(24) * config.notification_retention_days;
    retention::spawn(runtime, &database, &nats, age);
    let news = News::hear(runtime, nats.client().clone());
    let services = services(runtime, &database, news, &config.seal, config.webhooks)?;

    let listener = TcpListener::bind(config.grpc_listen)
        .await
        .with_context(|| format!("cannot listen on {}", config.grpc_listen))?;
    grpc::serve(runtime, listener, guard(services, verifier, database.shares()), DESCRIPTORS)
}

/// The gRPC services, to be put behind [`guard`]. Webhooks are sent what they are due while the
/// program runs.
pub fn services(
    runtime: &Runtime,
    database: &Database,
    news: News,
    seal: &SealConfig,
    webhooks: WebhookConfig,
) -> anyhow::Result<Routes> {
    let (db, seal) = (database.pool(), Seal::new(seal)?);
    let reach = Reach::new(webhooks.webhook_networks);
    Sender::new(db, &seal, &reach)?.spawn(runtime, database, news.clone());
    let shares = database.shares().clone();
    let notifications = NotificationService { db: db.clone(), shares, news };
    let webhooks = WebhookService { db: db.clone(), seal, reach };
    Ok(Routes::new(NotificationServiceServer::new(notifications))
        .add_service(WebhookServiceServer::new(webhooks)))
}

/// Turns the events of other services into notifications, and publishes these.
pub fn exchange_events(runtime: &Runtime, database: &Database, nats: &Nats) {
    for stream in HEARD {
        Consumer::new("notification", stream).start(runtime, database, nats, Reactions);
    }
    Relay::start(runtime, database, nats, PUBLISHED);
}
