//! The PostgreSQL database of a service: lazily connected, migrated in the background.

mod lock;
mod migration;
mod reachability;
mod rounds;
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

pub use self::{lock::exclusively, migration::Migrate, transaction::begin};
use assay_fair::Shares;
use assay_runtime::{Gate, Runtime};

/// Maximum wait for a connection. Requests fail within three seconds if there is none.
const ACQUIRE_TIMEOUT: Duration = Duration::from_millis(2500);

/// Interval of the metrics of connections.
const METRICS_INTERVAL: Duration = Duration::from_secs(5);

/// Duration from which statements are logged as slow.
const SLOW_STATEMENT: Duration = Duration::from_secs(5);

/// Limits that PostgreSQL enforces. It cancels long statements, and closes the session and releases
/// the locks of a program that is frozen within a transaction or whose machine has vanished.
const SESSION_LIMITS: [(&str, &str); 7] = [
    ("statement_timeout", "30s"),
    ("lock_timeout", "10s"),
    ("idle_in_transaction_session_timeout", "5s"),
    ("tcp_keepalives_idle", "5"),
    ("tcp_keepalives_interval", "5"),
    ("tcp_keepalives_count", "3"),
    // Maximum time in milliseconds that sent data stays unacknowledged.
    ("tcp_user_timeout", "20000"),
];

/// Limits of the sessions of commands for operators, whose statements may take long. A command that is frozen
/// or cut off keeps no record locked.
const COMMAND_LIMITS: [(&str, &str); 4] = [
    ("idle_in_transaction_session_timeout", "2min"),
    ("tcp_keepalives_idle", "5"),
    ("tcp_keepalives_interval", "5"),
    ("tcp_keepalives_count", "3"),
];

/// Settings of the connection to the database.
#[derive(clap::Args, Clone, Debug)]
pub struct DatabaseConfig {
    /// URL of the PostgreSQL database of this service, as <postgres://user:password@host/database>
    #[arg(long, env = "ASSAY_DATABASE_URL", hide_env_values = true)]
    pub database_url: SecretString,
    #[command(flatten)]
    pub pool: PoolConfig,
    /// Migrate the database at startup. If false, the program waits until its command `migrate` has
    /// migrated the database, for example with another PostgreSQL role
    #[arg(
        long,
        env = "ASSAY_DATABASE_MIGRATE",
        default_value_t = true,
        action = ArgAction::Set
    )]
    pub database_migrate: bool,
}

/// Settings of the pool of connections.
#[derive(clap::Args, Clone, Copy, Debug)]
pub struct PoolConfig {
    /// Maximum number of connections of a service to its database
    #[arg(long, env = "ASSAY_DATABASE_CONNECTIONS", default_value_t = 8)]
    pub database_connections: u32,
}

/// The database of a service.
#[derive(Clone)]
pub struct Database {
    pool: PgPool,
    shares: Shares,
    migrated: CancellationToken,
    gate: Gate,
}

/// Parses the URL of a database. Its sessions compile no statements: PostgreSQL would compile those that it expects to
/// read much for up to half a second, and again at each execution.
pub fn connect_options(url: &SecretString) -> anyhow::Result<PgConnectOptions> {
    // Without the cause, which may quote the URL and its password.
    let options = PgConnectOptions::from_str(url.expose_secret())
        .map_err(|_| anyhow::anyhow!("ASSAY_DATABASE_URL is not a PostgreSQL URL"))?;
    Ok(options.options([("jit", "off")]))
}

/// Returns the options of a command for operators that locks records.
pub fn command_options(url: &SecretString) -> anyhow::Result<PgConnectOptions> {
    Ok(connect_options(url)?.options(COMMAND_LIMITS))
}

/// Returns options of a pool that refuses connections to a standby: after a failover, the address
/// may lead to one for a while, where reads are stale and writes fail.
fn pool_options(connections: u32) -> PgPoolOptions {
    PgPoolOptions::new()
        .max_connections(connections)
        .acquire_timeout(ACQUIRE_TIMEOUT)
        .after_connect(|connection, _| {
            Box::pin(async move {
                let is_standby = sqlx::query_scalar("select pg_is_in_recovery()");
                if is_standby.fetch_one(connection).await? {
                    return Err(sqlx::Error::Io(io::Error::other("the server is a standby")));
                }
                Ok(())
            })
        })
}

impl Database {
    /// Opens the database without waiting for it. The program is not ready until the database is
    /// migrated, which is retried until it succeeds.
    pub fn open(
        runtime: &Runtime,
        config: &DatabaseConfig,
        migrations: Migrator,
    ) -> anyhow::Result<Self> {
        let options = connect_options(&config.database_url)?
            .application_name(runtime.name())
            .options(SESSION_LIMITS)
            .log_slow_statements(LevelFilter::Warn, SLOW_STATEMENT);
        let connections = config.pool.database_connections;
        let pool = pool_options(connections)
            // Testing every connection before use would cost a fifth of the throughput of reads, so
            // only those that have idled are tested.
            .test_before_acquire(false)
            .before_acquire(|connection, meta| {
                Box::pin(async move {
                    if meta.idle_for > Duration::from_secs(1) {
                        tokio::time::timeout(ACQUIRE_TIMEOUT, connection.ping())
                            .await
                            .map_err(|_| sqlx::Error::PoolTimedOut)??;
                    }
                    Ok(true)
                })
            })
            .connect_lazy_with(options);

        measure(runtime, pool.clone());
        let shares = Shares::adaptive(usize::try_from(connections)?);
        let gate = runtime.gate("database");
        let database = Self { pool, shares, migrated: CancellationToken::new(), gate };
        let (this, stopping, is_owner) =
            (database.clone(), runtime.stopping(), config.database_migrate);
        runtime.spawn("migration", async move {
            let migrated = migration::complete(&this.pool, &migrations, is_owner);
            if let Some(migrated) = stopping.run_until_cancelled(migrated).await {
                migrated?;
                this.migrated.cancel();
                this.gate.open();
            }
            Ok(())
        });
        Ok(database)
    }

    pub fn pool(&self) -> &PgPool {
        &self.pool
    }

    /// Returns the shares of the connections. Work for a customer holds one while it uses the
    /// database.
    pub fn shares(&self) -> &Shares {
        &self.shares
    }

    /// Resolves when the database is migrated.
    pub async fn ready(&self) {
        self.migrated.cancelled().await;
    }
}

/// Exports the number of connections every few seconds.
fn measure(runtime: &Runtime, pool: PgPool) {
    let (program, stopping) = (runtime.name(), runtime.stopping());
    runtime.spawn("pool metrics", async move {
        let mut tick = tokio::time::interval(METRICS_INTERVAL);
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
