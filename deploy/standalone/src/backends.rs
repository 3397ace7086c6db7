//! PostgreSQL, NATS and encryption keys: those of the settings, or private ones in the data
//! directory.

use std::path::PathBuf;

use anyhow::{Context, Error, Result};
use assay_auth::SealConfig;
use assay_database::connect_options;
use assay_runtime::nats::NatsServers;
use assay_servers::{DataDir, Nats, Postgres, PostgresOptions};
use secrecy::{ExposeSecret, SecretString};
use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection, PgConnection};
use url::Url;

use crate::keys;

/// Names of the services, in the order of their databases.
pub const SERVICES: [&str; 4] = ["identity", "catalog", "execution", "notification"];

/// Names of the databases, one for each service.
const DATABASES: [&str; 4] =
    ["assay_identity", "assay_catalog", "assay_execution", "assay_notification"];

/// Settings of the data directory, and of what is used instead of it.
#[derive(clap::Args, Clone, Debug)]
pub struct BackendConfig {
    /// Data directory: databases, keys, mails and artifacts
    #[arg(long, env = "ASSAY_DATA_DIR", default_value = "data")]
    pub data_dir: PathBuf,
    /// URL of the PostgreSQL server for the databases of all services, such as
    /// <postgres://user:password@host/postgres>. Default: a private server in the data directory
    #[arg(long, env = "ASSAY_DATABASE_URL", hide_env_values = true)]
    pub database_url: Option<SecretString>,
    /// URL of the identity service's database, for `verify` and `rebuild`. Default: `assay_identity`
    /// on the PostgreSQL server
    #[arg(
        long,
        env = "ASSAY_IDENTITY_DATABASE_URL",
        hide_env_values = true,
        requires = "catalog_database_url"
    )]
    pub identity_database_url: Option<SecretString>,
    /// URL of the catalog's database, for `verify` and `rebuild`. Default: `assay_catalog` on the
    /// PostgreSQL server
    #[arg(
        long,
        env = "ASSAY_CATALOG_DATABASE_URL",
        hide_env_values = true,
        requires = "execution_database_url"
    )]
    pub catalog_database_url: Option<SecretString>,
    /// URL of the execution service's database, for `verify` and `rebuild`. Default: `assay_execution`
    /// on the PostgreSQL server
    #[arg(
        long,
        env = "ASSAY_EXECUTION_DATABASE_URL",
        hide_env_values = true,
        requires = "notification_database_url"
    )]
    pub execution_database_url: Option<SecretString>,
    /// URL of the notification service's database, for `verify` and `rebuild`. Default:
    /// `assay_notification` on the PostgreSQL server
    #[arg(
        long,
        env = "ASSAY_NOTIFICATION_DATABASE_URL",
        hide_env_values = true,
        requires = "identity_database_url"
    )]
    pub notification_database_url: Option<SecretString>,
    #[command(flatten)]
    pub nats: Option<NatsServers>,
    #[command(flatten)]
    pub seal: Option<SealConfig>,
}

/// URLs of the databases of the services, NATS servers and encryption keys.
#[derive(Clone, Debug)]
pub struct Backends {
    pub identity: SecretString,
    pub catalog: SecretString,
    pub execution: SecretString,
    pub notification: SecretString,
    pub nats: NatsServers,
    pub seal: SealConfig,
}

/// Servers that this process started.
#[derive(Default)]
pub struct Servers {
    postgres: Option<Postgres>,
    nats: Option<Nats>,
}

impl BackendConfig {
    /// Opens the backends. Starts private servers in `data`, and generates an encryption key there,
    /// unless the settings have others.
    pub async fn open(&self, data: &DataDir) -> Result<(Backends, Servers)> {
        let seal = match &self.seal {
            Some(seal) => seal.clone(),
            None => keys::load_or_create(data.path())?,
        };
        let opened = tokio::try_join!(
            databases(data, self.database_url.as_ref()),
            broker(data, self.nats.as_ref())
        );
        let (([identity, catalog, execution, notification], postgres), (nats, server)) = opened?;
        let backends = Backends { identity, catalog, execution, notification, nats, seal };
        Ok((backends, Servers { postgres, nats: server }))
    }

    /// Returns the database URLs of a running Assay: identity, catalog, execution and notification.
    pub fn running_databases(&self) -> Result<[SecretString; 4]> {
        let database_url = |database| match &self.database_url {
            Some(url) => database_on(url, database),
            None => Ok(Postgres::url_of_running(&self.data_dir, database)?.into()),
        };
        let [identity, catalog, execution, notification] = DATABASES.map(database_url);
        Ok([identity?, catalog?, execution?, notification?])
    }

    /// Returns the URLs of the databases that are compared: identity, catalog, execution and notification.
    pub fn compared_databases(&self) -> Result<[SecretString; 4]> {
        // Each one requires the next one.
        if let (Some(identity), Some(catalog), Some(execution), Some(notification)) = (
            &self.identity_database_url,
            &self.catalog_database_url,
            &self.execution_database_url,
            &self.notification_database_url,
        ) {
            return Ok([identity, catalog, execution, notification].map(Clone::clone));
        }
        self.running_databases()
    }

    /// Returns the NATS servers of a running Assay.
    pub fn running_nats(&self) -> Result<NatsServers> {
        match &self.nats {
            Some(nats) => Ok(nats.clone()),
            None => Ok(NatsServers::at(Nats::url_of_running(&self.data_dir)?.into())),
        }
    }

    /// Returns the encryption keys of a running Assay.
    pub fn running_keys(&self) -> Result<SealConfig> {
        if let Some(seal) = &self.seal {
            return Ok(seal.clone());
        }
        keys::load(&self.data_dir)?.with_context(|| {
            format!("no encryption keys in {}; set ASSAY_ENCRYPTION_KEYS", self.data_dir.display())
        })
    }
}

async fn databases(
    data: &DataDir,
    url: Option<&SecretString>,
) -> Result<([SecretString; 4], Option<Postgres>)> {
    if let Some(url) = url {
        return Ok((databases_of(url).await?, None));
    }
    let postgres = Postgres::start(data, &PostgresOptions::default()).await?;
    for database in DATABASES {
        postgres.create_database_if_missing(database).await?;
    }
    Ok((DATABASES.map(|database| postgres.url(database).into()), Some(postgres)))
}

/// Creates missing databases on the server of `url`.
async fn databases_of(url: &SecretString) -> Result<[SecretString; 4]> {
    let mut server = PgConnection::connect_with(&connect_options(url)?.disable_statement_logging())
        .await
        .context("cannot connect to PostgreSQL; check ASSAY_DATABASE_URL")?;
    for database in DATABASES {
        let exists = "select exists (select from pg_database where datname = $1)";
        if !sqlx::query_scalar(exists).bind(database).fetch_one(&mut server).await? {
            let create = AssertSqlSafe(format!("create database {database}"));
            sqlx::query(create)
                .execute(&mut server)
                .await
                .with_context(|| format!("cannot create the missing database {database}"))?;
        }
    }
    server.close().await?;
    let [identity, catalog, execution, notification] =
        DATABASES.map(|database| database_on(url, database));
    Ok([identity?, catalog?, execution?, notification?])
}

/// Returns the URL of a database on the server of `url`.
fn database_on(url: &SecretString, database: &str) -> Result<SecretString> {
    let mut url =
        Url::parse(url.expose_secret()).context("ASSAY_DATABASE_URL is not a valid URL")?;
    url.set_path(database);
    Ok(url.as_str().into())
}

async fn broker(
    data: &DataDir,
    servers: Option<&NatsServers>,
) -> Result<(NatsServers, Option<Nats>)> {
    if let Some(servers) = servers {
        return Ok((servers.clone(), None));
    }
    let nats = Nats::start(data, None).await?;
    Ok((NatsServers::at(nats.url().into()), Some(nats)))
}

impl Servers {
    /// Resolves when a private server exits unexpectedly.
    pub async fn failed(&self) -> Error {
        let postgres = async {
            match &self.postgres {
                Some(postgres) => postgres.exited().await,
                None => std::future::pending().await,
            }
        };
        let nats = async {
            match &self.nats {
                Some(nats) => nats.exited().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! { error = postgres => error, error = nats => error }
    }

    /// Stops the private servers.
    pub async fn stop(self) -> Result<()> {
        if let Some(nats) = self.nats {
            nats.stop().await?;
        }
        if let Some(postgres) = self.postgres {
            postgres.stop().await?;
        }
        Ok(())
    }
}
