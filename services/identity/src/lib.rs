//! Who may do what: customers, their users and groups, and the tokens that users prove themselves
//! with.

mod account;
mod customer;
mod first_start;
mod membership;
mod password;
mod signing_key;
mod token;
mod user_group;

use std::{net::SocketAddr, time::Duration};

use anyhow::Context;
use assay_auth::{Seal, SealConfig, Verifier, guard};
use assay_events::{Nats, NatsConfig, Relay, Stream};
use assay_proto::{
    DESCRIPTORS,
    identity::{
        customer_service_server::CustomerServiceServer, token_service_server::TokenServiceServer,
    },
};
use assay_runtime::{Database, DatabaseConfig, Runtime, grpc};
use secrecy::SecretString;
use sqlx::{PgPool, migrate::Migrator};
use tokio::{net::TcpListener, sync::oneshot};
use tonic::service::Routes;

pub use self::first_start::FirstLogin;
use self::{
    customer::CustomerService, first_start::FirstStart, password::Passwords, signing_key::Keys,
    token::TokenService,
};

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
    #[arg(long, env = "ASSAY_GRPC_LISTEN", default_value = "127.0.0.1:50051")]
    pub grpc_listen: SocketAddr,
    /// The email of the first administrator, who is made when there is no customer yet;
    /// admin@assay.local without it
    #[arg(long, env = "ASSAY_ADMIN_EMAIL")]
    pub admin_email: Option<String>,
    /// The first administrator's password, 12 to 256 characters; without it one is made and printed
    /// once
    #[arg(long, env = "ASSAY_ADMIN_PASSWORD", hide_env_values = true)]
    pub admin_password: Option<SecretString>,
    /// The name of the first customer, whose administrators manage the others
    #[arg(long, env = "ASSAY_OPERATOR_NAME", default_value = "Assay")]
    pub operator_name: String,
    /// How many hours a token is valid
    #[arg(long, env = "ASSAY_TOKEN_LIFETIME_IN_H", default_value = "12", value_parser = hours)]
    pub token_lifetime: Duration,
    /// The domain that the customers' hosts are in: users of `acme.<domain>` log in to the customer
    /// with the subdomain `acme`
    #[arg(long, env = "ASSAY_BASE_DOMAIN")]
    pub base_domain: Option<String>,
}

/// A service that was started.
#[derive(Debug)]
pub struct Started {
    /// Where it serves gRPC.
    pub address: SocketAddr,
    /// How to log in, if this start makes the administrator with a password of its own; fails if it
    /// does not. To be shown once, and to be logged never.
    pub first_login: oneshot::Receiver<FirstLogin>,
}

/// The schema of the service's database.
pub fn migrations() -> Migrator {
    assay_events::migrations(&sqlx::migrate!())
}

/// Starts the service. It is ready when its database is migrated and its first start done.
pub async fn start(runtime: &Runtime, config: Config) -> anyhow::Result<Started> {
    let first_start = FirstStart::of(&config)?;
    let verifier = Verifier::without_keys();
    let keys = Keys::new(Seal::new(&config.seal)?, config.token_lifetime, verifier.clone());
    let passwords = Passwords::new()?;

    let database = Database::open(runtime, &config.database, migrations())?;
    let nats = Nats::connect(&config.nats, runtime.name()).await?;
    Relay::start(runtime, &database, &nats, Stream::of("identity"));
    let first_login = first_start.spawn(runtime, &database, &passwords, &keys);

    let services = services(database.pool(), passwords, keys, config.base_domain);
    let listener = TcpListener::bind(config.grpc_listen)
        .await
        .with_context(|| format!("cannot listen on {}", config.grpc_listen))?;
    let address = grpc::serve(runtime, listener, guard(services, verifier), DESCRIPTORS)?;
    Ok(Started { address, first_login })
}

fn services(db: &PgPool, passwords: Passwords, keys: Keys, base_domain: Option<String>) -> Routes {
    let tokens = TokenService { db: db.clone(), passwords, keys, base_domain };
    let customers = CustomerService { db: db.clone() };
    Routes::new(TokenServiceServer::new(tokens)).add_service(CustomerServiceServer::new(customers))
}

/// Reads a number of hours.
fn hours(text: &str) -> Result<Duration, String> {
    match text.parse() {
        Ok(hours @ 1..=8760) => Ok(Duration::from_hours(hours)),
        _ => Err("must be a whole number from 1 to 8760".to_owned()),
    }
}
