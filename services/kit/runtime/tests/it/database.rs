//! Databases whose programs are cut off.

use std::time::Duration;

use anyhow::Result;
use assay_runtime::{Database, DatabaseConfig, Runtime};
use assay_testkit::{TestDatabase, Wire};
use sqlx::{PgPool, migrate::Migrator};

const LOCK: &str = "select pg_advisory_xact_lock(1)";

fn open(runtime: &Runtime, url: &str) -> Result<PgPool> {
    let config = DatabaseConfig {
        database_url: url.into(),
        database_connections: 2,
        database_migrate: true,
    };
    Ok(Database::open(runtime, &config, Migrator::DEFAULT)?.pool().clone())
}

/// A program that is stopped (SIGSTOP), or whose network is gone, is silent, and its connection
/// stands.
#[tokio::test]
async fn locks_of_a_program_that_falls_silent_within_a_transaction_are_released() -> Result<()> {
    let database = TestDatabase::empty().await?;
    let (wire, url) = Wire::to_postgres(&database.url).await?;
    let (silent, other) = (Runtime::new("silent"), Runtime::new("other"));
    let mut tx = open(&silent, &url)?.begin().await?;
    sqlx::query(LOCK).execute(&mut *tx).await?;
    let wait = |limit| {
        tokio::time::timeout(limit, async {
            let mut tx = open(&other, &database.url)?.begin().await?;
            sqlx::query(LOCK).execute(&mut *tx).await?;
            anyhow::Ok(())
        })
    };
    assert!(wait(Duration::from_millis(300)).await.is_err(), "the lock is held");

    wire.freeze();
    wait(Duration::from_secs(9)).await??;
    Ok(())
}
