//! Migration of a database, or waiting until another program has migrated it.
//!
//! A statement that changes a table waits for all transactions that use it, and everyone else waits
//! behind that statement. So a migration waits for locks for two seconds only, and then lets the
//! others pass before it tries again. Its statements have no time limit: an index of a large table
//! takes minutes. A migration that begins with `-- no-transaction` builds an index beside writes; it
//! waits for transactions without a limit, since nobody waits behind it.

mod session;

use std::{collections::HashSet, time::Duration};

use anyhow::Context;
use assay_proto::is_transient;
use sqlx::{
    PgPool,
    migrate::{MigrateError, Migrator},
};
use tokio::time::sleep;

use super::{ACQUIRE_TIMEOUT, DatabaseConfig, connect_options, pool_options};

/// First and longest pause after a wait for a lock.
const LOCK_PAUSE: (Duration, Duration) = (Duration::from_millis(2500), Duration::from_secs(30));

/// SQLSTATE of a missing table.
const UNDEFINED_TABLE: &str = "42P01";

/// Migrate the database and exit, waiting until it is reachable
#[derive(clap::Args, Clone, Copy, Debug)]
pub struct Migrate {}

impl Migrate {
    /// Migrates the database, and returns a message for the operator.
    pub async fn run(
        self,
        config: &DatabaseConfig,
        migrations: &Migrator,
    ) -> anyhow::Result<&'static str> {
        let options = connect_options(&config.database_url)?;
        let pool = pool_options(1).connect_lazy_with(options);
        complete(&pool, migrations, true).await?;
        pool.close().await;
        Ok("The database is up to date")
    }
}

/// Resolves when this or another program has applied all migrations. Fails only if waiting cannot
/// help.
pub(super) async fn complete(
    pool: &PgPool,
    migrations: &Migrator,
    migrates: bool,
) -> anyhow::Result<()> {
    let mut pause = Duration::from_millis(50);
    loop {
        let done = if migrates {
            session::migrate(pool, migrations).await
        } else {
            are_applied(pool, migrations).await.map_err(MigrateError::Execute)
        };
        match done {
            Ok(true) => return Ok(()),
            Ok(false) if migrates => {
                tracing::info!("waiting for another program that migrates the database");
            }
            Ok(false) => tracing::warn!("waiting for the command `migrate`"),
            Err(MigrateError::Execute(error) | MigrateError::ExecuteMigration(error, _))
                if session::is_lock_timeout(&error) =>
            {
                sleep(pause.max(LOCK_PAUSE.0)).await;
                pause = (pause.max(LOCK_PAUSE.0) * 2).min(LOCK_PAUSE.1);
                continue;
            }
            Err(MigrateError::Execute(error) | MigrateError::ExecuteMigration(error, _))
                if is_unreachable(&error) =>
            {
                tracing::warn!(%error, "cannot reach the database; retrying");
            }
            Err(error) => return Err(error).context("cannot migrate the database"),
        }
        sleep(pause).await;
        pause = (pause * 2).min(ACQUIRE_TIMEOUT);
    }
}

async fn are_applied(pool: &PgPool, migrations: &Migrator) -> Result<bool, sqlx::Error> {
    let applied = "select version from _sqlx_migrations where success";
    match sqlx::query_scalar(applied).fetch_all(pool).await {
        Ok(applied) => {
            let applied: HashSet<i64> = applied.into_iter().collect();
            Ok(migrations.iter().all(|migration| applied.contains(&migration.version)))
        }
        Err(sqlx::Error::Database(error)) if error.code().as_deref() == Some(UNDEFINED_TABLE) => {
            Ok(false)
        }
        Err(error) => Err(error),
    }
}

/// Whether the database may recover without intervention.
fn is_unreachable(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Database(error) => is_transient(&**error),
        sqlx::Error::Migrate(_) => false,
        _ => true,
    }
}
