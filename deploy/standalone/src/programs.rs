//! Starts the five programs in the order of their dependencies and stops the gateway first.

use std::{net::SocketAddr, time::Duration};

use anyhow::{Context, Result, bail, ensure};
use assay_database::DatabaseConfig;
use assay_events::NatsConfig;
use assay_execution::ArtifactConfig;
use assay_identity::{FirstLogin, FirstStartConfig};
use assay_notification::LinkConfig;
use assay_runtime::{Process, Runtime, nats::NatsServers};
use futures::future::{join_all, select_all};
use secrecy::SecretString;

use crate::{Backends, Settings};

/// Maximum time until the programs are ready.
const START_DEADLINE: Duration = Duration::from_mins(1);

/// Maximum time for requests, and then for tasks, to finish on shutdown.
const GRACE: Duration = Duration::from_secs(25);

/// Services listen on a free local port; only other programs of this process connect to them.
const ANY_PORT: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 0);

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
        Self::start_as(backends, settings, |_| backends.nats.clone()).await
    }

    /// Starts the programs like [`Assay::start`], each with the NATS servers that `nats_of` returns.
    pub async fn start_as(
        backends: &Backends,
        settings: Settings,
        nats_of: impl Fn(&'static str) -> NatsServers,
    ) -> Result<Self> {
        let database = |url: &SecretString| DatabaseConfig {
            database_url: url.clone(),
            pool: settings.pool,
            database_migrate: true,
        };
        let nats = |program| NatsConfig { servers: nats_of(program), events: settings.events };
        let url = |address: SocketAddr| format!("http://{address}");
        let public = settings.public_url()?;
        let seal = &backends.seal;
        let process = Process::default();
        let runtimes = ["identity", "catalog", "execution", "notification", "gateway"]
            .map(|program| Runtime::within(&process, program));
        let [identity, catalog, execution, notification, gateway] = &runtimes;

        let started = assay_identity::start(
            identity,
            assay_identity::Config {
                database: database(&backends.identity),
                nats: nats("identity"),
                seal: seal.clone(),
                grpc_listen: ANY_PORT,
                public: public.clone(),
                console: settings.edge.console,
                first_start: FirstStartConfig { generates_password: true, ..settings.first_start },
                login: settings.login,
                audit: settings.audit,
                mail: settings.mail,
            },
        )
        .await?;
        let identity_url = url(started.address);
        let catalog_address = assay_catalog::start(
            catalog,
            assay_catalog::Config {
                database: database(&backends.catalog),
                nats: nats("catalog"),
                seal: seal.clone(),
                file_store: settings.file_store.clone(),
                files: settings.files,
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
                artifacts: ArtifactConfig {
                    file_store: settings.file_store.clone(),
                    seal: seal.clone(),
                    public: public.clone(),
                },
                leases: settings.leases,
                quota: settings.quota,
                queue_metrics: settings.queue_metrics,
                console: settings.edge.console,
            },
        )
        .await?;
        let notification_address = assay_notification::start(
            notification,
            assay_notification::Config {
                database: database(&backends.notification),
                nats: nats("notification"),
                seal: seal.clone(),
                grpc_listen: ANY_PORT,
                identity_url: identity_url.clone(),
                retention: settings.retention,
                webhooks: settings.webhooks,
                links: LinkConfig { public, console: settings.edge.console },
            },
        )
        .await?;
        let address = assay_gateway::start(
            gateway,
            assay_gateway::Config {
                edge: settings.edge,
                identity_url,
                catalog_url: url(catalog_address),
                execution_url: url(execution_address),
                notification_url: url(notification_address),
                nats: nats_of("gateway"),
                largest_file_mib: settings.file_store.largest_file_mib,
            },
        )
        .await?;

        let [identity, catalog, execution, notification, gateway] = runtimes;
        let services = vec![identity, catalog, execution, notification];
        let assay =
            Self { address, first_login: None, gateway, services }.ready_or_stopped().await?;
        Ok(Self { first_login: started.first_login.await.ok(), ..assay })
    }

    /// Returns the programs once they are ready, or the error that stopped one of them.
    async fn ready_or_stopped(self) -> Result<Self> {
        if let Err(error) = self.ready().await {
            // The error that stopped a program explains more than that it is not ready.
            self.stop().await?;
            return Err(error);
        }
        Ok(self)
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
