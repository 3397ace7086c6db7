//! The PostgreSQL database of a service: lazily connected, migrated in the background.

mod alone;
mod migration;
mod transaction;

use std::{io, str::FromStr, time::Duration};

use clap::ArgAction;
use log::LevelFilter;
use secrecy::{ExposeSecret, SecretString};
use sqlx::{
    ConnectOptions, Connection, PgPool,
    migrate::Migrator,
    postgres::{PgConnectOptions, PgPoolOptions},
};
use tokio_util::sync::CancellationToken;

pub use self::{alone::Alone, migration::Migrate, transaction::begin};
use crate::{Runtime, Shares};

/// How long the wait for a connection may take: who asks is told within three seconds that there is
/// none.
const PATIENCE: Duration = Duration::from_millis(2500);

/// How often the connections are counted.
const MEASURE: Duration = Duration::from_secs(5);

/// Statements that take longer are logged.
const SLOW: Duration = Duration::from_secs(5);

/// PostgreSQL's own limits. It ends the session, and frees the locks, of a program that is frozen
/// within a transaction or whose machine has vanished, and statements that take too long.
const SESSION: [(&str, &str); 7] = [
    ("statement_timeout", "30s"),
    ("lock_timeout", "10s"),
    ("idle_in_transaction_session_timeout", "5s"),
    ("tcp_keepalives_idle", "5"),
    ("tcp_keepalives_interval", "5"),
    ("tcp_keepalives_count", "3"),
    // In milliseconds: how long sent data may stay unacknowledged.
    ("tcp_user_timeout", "20000"),
];

/// How to reach the database.
#[derive(clap::Args, Clone, Debug)]
pub struct DatabaseConfig {
    /// The PostgreSQL database of this service, as <postgres://user:password@host/database>
    #[arg(long, env = "ASSAY_DATABASE_URL", hide_env_values = true)]
    pub database_url: SecretString,
    /// How many connections to the database are used at most
    #[arg(long, env = "ASSAY_DATABASE_CONNECTIONS", default_value_t = 8)]
    pub database_connections: u32,
    /// Whether the program migrates its database when it starts; if not, it waits until its command
    /// `migrate` has done so, which can then be left to another PostgreSQL role
    #[arg(
        long,
        env = "ASSAY_DATABASE_MIGRATE",
        default_value_t = true,
        action = ArgAction::Set
    )]
    pub database_migrate: bool,
}

/// The database of a service.
#[derive(Clone)]
pub struct Database {
    pool: PgPool,
    shares: Shares,
    migrated: CancellationToken,
}

/// How sqlx connects to a database given by its URL.
pub fn connect_options(url: &SecretString) -> anyhow::Result<PgConnectOptions> {
    // The cause is left out on purpose: it may quote the URL and with it the password.
    PgConnectOptions::from_str(url.expose_secret())
        .map_err(|_| anyhow::anyhow!("ASSAY_DATABASE_URL is not a PostgreSQL URL"))
}

/// A pool that takes no connections to a server that follows another one: after a failover, its
/// address may lead there for a while, where reads are old and writes fail.
fn pool_options(connections: u32) -> PgPoolOptions {
    PgPoolOptions::new().max_connections(connections).acquire_timeout(PATIENCE).after_connect(
        |connection, _| {
            Box::pin(async move {
                let is_standby = sqlx::query_scalar("select pg_is_in_recovery()");
                if is_standby.fetch_one(connection).await? {
                    return Err(sqlx::Error::Io(io::Error::other("the server is a standby")));
                }
                Ok(())
            })
        },
    )
}

impl Database {
    /// Returns at once. The program is ready when the database was reached and migrated, which is
    /// tried until it works.
    pub fn open(
        runtime: &Runtime,
        config: &DatabaseConfig,
        migrations: Migrator,
    ) -> anyhow::Result<Self> {
        let options = connect_options(&config.database_url)?
            .application_name(runtime.name())
            .options(SESSION)
            .log_slow_statements(LevelFilter::Warn, SLOW);
        let pool = pool_options(config.database_connections)
            // Testing each connection before use costs a fifth of the reads; one that was in use
            // a moment ago is not tested.
            .test_before_acquire(false)
            .before_acquire(|connection, meta| {
                Box::pin(async move {
                    if meta.idle_for > Duration::from_secs(1) {
                        tokio::time::timeout(PATIENCE, connection.ping())
                            .await
                            .map_err(|_| sqlx::Error::PoolTimedOut)??;
                    }
                    Ok(true)
                })
            })
            .connect_lazy_with(options);

        measure(runtime, pool.clone());
        let shares = Shares::adaptive(usize::try_from(config.database_connections)?);
        let database = Self { pool, shares, migrated: CancellationToken::new() };
        let gate = runtime.gate("database");
        let (this, stopping, is_owner) =
            (database.clone(), runtime.stopping(), config.database_migrate);
        runtime.spawn("migration", async move {
            let migrated = migration::complete(&this.pool, &migrations, is_owner);
            if let Some(migrated) = stopping.run_until_cancelled(migrated).await {
                migrated?;
                this.migrated.cancel();
                gate.open();
            }
            Ok(())
        });
        Ok(database)
    }

    pub fn pool(&self) -> &PgPool {
        &self.pool
    }

    /// Shares of the connections: whoever works with the database on behalf of a customer holds one.
    pub fn shares(&self) -> &Shares {
        &self.shares
    }

    /// Resolves when the database is migrated.
    pub async fn ready(&self) {
        self.migrated.cancelled().await;
    }
}

/// Tells every few seconds how many connections there are.
fn measure(runtime: &Runtime, pool: PgPool) {
    let (program, stopping) = (runtime.name(), runtime.stopping());
    runtime.spawn("pool metrics", async move {
        let mut tick = tokio::time::interval(MEASURE);
        while stopping.run_until_cancelled(tick.tick()).await.is_some() {
            let idle = u32::try_from(pool.num_idle()).unwrap_or(u32::MAX);
            for (state, count) in [("idle", idle), ("used", pool.size().saturating_sub(idle))] {
                metrics::gauge!(
                    "assay_database_connections",
                    "program" => program,
                    "state" => state
                )
                .set(count);
            }
        }
        Ok(())
    });
}
