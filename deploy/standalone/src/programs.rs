//! Starts the five programs in the order of their dependencies and stops the gateway first.

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use anyhow::{Context, Result, bail, ensure};
use assay_auth::SealConfig;
use assay_events::NatsConfig;
use assay_execution::{ArtifactConfig, FileStoreConfig, LeaseSettings};
use assay_gateway::EdgeConfig;
use assay_identity::FirstLogin;
use assay_notification::WebhookConfig;
use assay_runtime::{DatabaseConfig, Runtime, nats::NatsServers};
use futures::future::{join_all, select_all};
use secrecy::SecretString;
use url::Url;

/// Maximum time until the programs are ready.
const START_DEADLINE: Duration = Duration::from_mins(1);

/// Maximum time for requests, and then for tasks, to finish on shutdown.
const GRACE: Duration = Duration::from_secs(25);

/// Maximum number of database connections of each service.
const CONNECTIONS: u32 = 8;

/// Retention of events in days.
const EVENT_RETENTION_DAYS: u32 = 7;

/// Lifetime of a token.
const TOKEN_LIFETIME: Duration = Duration::from_hours(12);

/// Maximum duration of a session; then the user logs in again.
const SESSION_LIFETIME: Duration = Duration::from_hours(24 * 7);

/// Retention of audit entries in days.
const AUDIT_RETENTION_DAYS: u32 = 400;

/// Number of logins that may fail in a row, for an account and for an address.
const LOGIN_FAILURES: (u32, u32) = (10, 100);

/// Services listen on a free local port; only other programs of this process connect to them.
const ANY_PORT: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 0);

/// URLs of the databases of the services and of the NATS server.
#[derive(Clone, Debug)]
pub struct Backends {
    pub identity: SecretString,
    pub catalog: SecretString,
    pub execution: SecretString,
    pub notification: SecretString,
    pub nats_url: SecretString,
}

/// Settings of all programs.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Address on which `/api` and `/docs` are served.
    pub http_listen: SocketAddr,
    pub admin_email: Option<String>,
    pub admin_password: Option<SecretString>,
    pub seal: SealConfig,
    /// Base of links in mails. Default: `http_listen`.
    pub public_url: Option<Url>,
    /// Parent domain of the customers' hosts.
    pub base_domain: Option<String>,
    /// URL of the SMTP server; without one, mails are written to `mail_dir`.
    pub smtp_url: Option<SecretString>,
    pub mail_from: Option<String>,
    pub mail_dir: PathBuf,
    pub edge: EdgeConfig,
    /// Storage of artifacts.
    pub file_store: FileStoreConfig,
    /// Expiry of leases.
    pub leases: LeaseSettings,
    pub notification_retention_days: u32,
    pub webhooks: WebhookConfig,
}

/// A running Assay.
pub struct Assay {
    /// Address on which `/api` and `/docs` are served.
    pub address: SocketAddr,
    /// Credentials of the administrator if this start created it without a given password.
    pub first_login: Option<FirstLogin>,
    gateway: Runtime,
    services: Vec<Runtime>,
}

impl Assay {
    /// Starts the programs and waits until they are ready.
    pub async fn start(backends: &Backends, settings: Settings) -> Result<Self> {
        Self::start_as(backends, settings, |_| backends.nats_url.clone()).await
    }

    /// Starts the programs like [`Assay::start`], each with the NATS URL that `nats_url` returns.
    pub async fn start_as(
        backends: &Backends,
        settings: Settings,
        nats_url: impl Fn(&'static str) -> SecretString,
    ) -> Result<Self> {
        let servers = |program| NatsServers::at(nats_url(program));
        let nats = |program| nats_config(nats_url(program));
        let url = |address: SocketAddr| format!("http://{address}");
        let public_url = match settings.public_url {
            Some(public_url) => public_url,
            None => Url::parse(&url(settings.http_listen))?,
        };
        let runtimes =
            ["identity", "catalog", "execution", "notification", "gateway"].map(Runtime::new);
        let [identity, catalog, execution, notification, gateway] = &runtimes;

        let started = assay_identity::start(
            identity,
            assay_identity::Config {
                database: database(&backends.identity),
                nats: nats("identity"),
                seal: settings.seal.clone(),
                grpc_listen: ANY_PORT,
                admin_email: settings.admin_email,
                admin_password: settings.admin_password,
                operator_name: "Assay".to_owned(),
                generates_password: true,
                token_lifetime: TOKEN_LIFETIME,
                session_lifetime: SESSION_LIFETIME,
                audit_retention_days: AUDIT_RETENTION_DAYS,
                base_domain: settings.base_domain,
                public_url: public_url.clone(),
                smtp_url: settings.smtp_url,
                mail_from: settings.mail_from,
                mail_dir: Some(settings.mail_dir),
                login_failures_per_account: LOGIN_FAILURES.0,
                login_failures_per_address: LOGIN_FAILURES.1,
            },
        )
        .await?;
        let identity_url = url(started.address);
        let catalog_address = assay_catalog::start(
            catalog,
            assay_catalog::Config {
                database: database(&backends.catalog),
                nats: nats("catalog"),
                seal: settings.seal.clone(),
                grpc_listen: ANY_PORT,
                identity_url: identity_url.clone(),
            },
        )
        .await?;
        let execution_address = assay_execution::start(
            execution,
            assay_execution::Config {
                database: database(&backends.execution),
                nats: nats("execution"),
                grpc_listen: ANY_PORT,
                identity_url: identity_url.clone(),
                catalog_url: url(catalog_address),
                artifacts: ArtifactConfig::new(
                    settings.file_store,
                    settings.seal.clone(),
                    public_url,
                ),
                leases: settings.leases,
            },
        )
        .await?;
        let notification_address = assay_notification::start(
            notification,
            assay_notification::Config {
                database: database(&backends.notification),
                nats: nats("notification"),
                seal: settings.seal.clone(),
                grpc_listen: ANY_PORT,
                identity_url: identity_url.clone(),
                notification_retention_days: settings.notification_retention_days,
                webhooks: settings.webhooks,
            },
        )
        .await?;
        let address = assay_gateway::start(
            gateway,
            assay_gateway::Config {
                http_listen: settings.http_listen,
                identity_url,
                catalog_url: url(catalog_address),
                execution_url: url(execution_address),
                notification_url: url(notification_address),
                nats: servers("gateway"),
                edge: settings.edge,
            },
        )
        .await?;

        let [identity, catalog, execution, notification, gateway] = runtimes;
        let services = vec![identity, catalog, execution, notification];
        let mut assay = Self { address, first_login: None, gateway, services };
        if let Err(error) = assay.ready().await {
            // The error that stopped a program explains more than that it is not ready.
            assay.stop().await?;
            return Err(error);
        }
        assay.first_login = started.first_login.await.ok();
        Ok(assay)
    }

    async fn ready(&self) -> Result<()> {
        let ready = join_all(self.runtimes().map(Runtime::ready));
        if tokio::time::timeout(START_DEADLINE, ready).await.is_err() {
            let missing = self.runtimes().flat_map(|runtime| {
                runtime.waits_for().into_iter().map(|what| format!("{}: {what}", runtime.name()))
            });
            bail!(
                "not ready within {START_DEADLINE:?}; still waiting for {}",
                missing.collect::<Vec<_>>().join(", ")
            );
        }
        ensure!(self.runtimes().all(Runtime::is_ready), "a program stopped");
        Ok(())
    }

    fn runtimes(&self) -> impl Iterator<Item = &Runtime> {
        self.services.iter().chain([&self.gateway])
    }

    /// Resolves when one of the programs stops by itself, after a failure.
    pub async fn stopped(&self) {
        let stopped = self.runtimes().map(|runtime| Box::pin(runtime.stopping().cancelled_owned()));
        select_all(stopped).await;
    }

    /// Stops all programs after open requests have finished. Returns the error of a program that
    /// stopped by itself.
    pub async fn stop(self) -> Result<()> {
        let gateway = self.gateway.stop(GRACE).await.context("gateway");
        let services = join_all(self.services.iter().map(|runtime| runtime.stop(GRACE))).await;
        let names = self.services.iter().map(Runtime::name);
        let services = services.into_iter().zip(names).map(|(stopped, name)| stopped.context(name));
        services.fold(gateway, Result::and)
    }
}

fn database(url: &SecretString) -> DatabaseConfig {
    DatabaseConfig {
        database_url: url.clone(),
        database_connections: CONNECTIONS,
        database_migrate: true,
    }
}

fn nats_config(nats_url: SecretString) -> NatsConfig {
    let servers = NatsServers::at(nats_url);
    NatsConfig { servers, nats_replicas: 1, event_retention_days: EVENT_RETENTION_DAYS }
}
