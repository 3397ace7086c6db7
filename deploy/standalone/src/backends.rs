//! PostgreSQL and NATS: the given servers, or private ones in the data directory.

use std::path::Path;

use anyhow::{Context, Error, Result};
use assay_runtime::connect_options;
use assay_servers::{DataDir, Nats, Postgres, PostgresOptions};
use secrecy::{ExposeSecret, SecretString};
use sqlx::{AssertSqlSafe, Connection, PgConnection};
use url::Url;

use crate::Backends;

/// Names of the services, in the order of their databases.
pub const SERVICES: [&str; 4] = ["identity", "catalog", "execution", "notification"];

/// Names of the databases, one for each service.
const DATABASES: [&str; 4] =
    ["assay_identity", "assay_catalog", "assay_execution", "assay_notification"];

/// Servers that this process started.
#[derive(Default)]
pub struct Servers {
    postgres: Option<Postgres>,
    nats: Option<Nats>,
}

/// Returns the databases and the NATS server; starts private servers in `data` for those without a
/// URL.
pub async fn open(
    data: &DataDir,
    database_url: Option<&SecretString>,
    nats_url: Option<SecretString>,
) -> Result<(Backends, Servers)> {
    let ((urls, postgres), (nats_url, nats)) =
        tokio::try_join!(databases(data, database_url), broker(data, nats_url))?;
    let [identity, catalog, execution, notification] = urls;
    let backends = Backends { identity, catalog, execution, notification, nats_url };
    Ok((backends, Servers { postgres, nats }))
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
    let mut server = PgConnection::connect_with(&connect_options(url)?)
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

/// Returns the database URLs of a running Assay: identity, catalog, execution and notification.
pub fn database_urls_of_running(
    data: &Path,
    database_url: Option<&SecretString>,
) -> Result<[SecretString; 4]> {
    let database_urls_of_running = |database| match database_url {
        Some(url) => database_on(url, database),
        None => Ok(Postgres::url_of_running(data, database)?.into()),
    };
    let [identity, catalog, execution, notification] = DATABASES.map(database_urls_of_running);
    Ok([identity?, catalog?, execution?, notification?])
}

/// Returns the NATS URL of a running Assay.
pub fn nats_url_of_running(data: &Path, nats_url: Option<&SecretString>) -> Result<SecretString> {
    match nats_url {
        Some(url) => Ok(url.clone()),
        None => Ok(Nats::url_of_running(data)?.into()),
    }
}

async fn broker(data: &DataDir, url: Option<SecretString>) -> Result<(SecretString, Option<Nats>)> {
    if let Some(url) = url {
        return Ok((url, None));
    }
    let nats = Nats::start(data, None).await?;
    Ok((nats.url().into(), Some(nats)))
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
