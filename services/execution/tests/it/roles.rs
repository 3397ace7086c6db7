//! Databases with separate roles for the owner of the tables and for the service.

use std::time::Duration;

use anyhow::{Context, Result};
use assay_database::{Database, DatabaseConfig, Migrate, PoolConfig};
use assay_execution::{Artifacts, Quota, QuotaConfig, enforce_retention, migrations};
use assay_runtime::Runtime;
use assay_testkit::{TestDatabase, test_dir};
use secrecy::ExposeSecret;
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, PgConnection, PgPool};
use tokio::time::timeout;
use uuid::Uuid;

use crate::world::artifacts;

/// Creates the roles of the owner and of the service in an empty database, and returns their settings.
async fn roles(database: &TestDatabase) -> Result<(DatabaseConfig, DatabaseConfig)> {
    let name = database.options.get_database().context("a name")?;
    let [owner, app] = ["owner", "app"].map(|role| format!("{role}_{}", Uuid::now_v7().simple()));
    let statements = format!(
        "create role {owner} login password 'o';
         create role {app} login password 'a';
         alter database {name} owner to {owner};
         alter default privileges for role {owner}
             grant select, insert, update, delete on tables to {app};
         alter default privileges for role {owner} grant usage on sequences to {app};"
    );
    let mut superuser = PgConnection::connect_with(&database.options).await?;
    sqlx::raw_sql(AssertSqlSafe(statements)).execute(&mut superuser).await?;
    let config = |role: &str, password: &str, database_migrate| {
        let options = database.options.clone().username(role).password(password);
        let database_url = options.to_url_lossy().as_str().into();
        DatabaseConfig {
            database_url,
            pool: PoolConfig { database_connections: 2 },
            database_migrate,
        }
    };
    Ok((config(&owner, "o", true), config(&app, "a", false)))
}

/// Adds an expired partition.
async fn add_expired_partition(owner: &DatabaseConfig) -> Result<()> {
    let mut db = PgConnection::connect(owner.database_url.expose_secret()).await?;
    let long_ago = "alter table instance detach partition instance_before;
        create table instance_2021_05 partition of instance
            for values from (first_id_at('2021-05-01Z')) to (first_id_at('2021-06-01Z'))";
    sqlx::raw_sql(long_ago).execute(&mut db).await?;
    Ok(())
}

async fn partitions(db: &PgPool, name: &str) -> Result<i64> {
    let count = "select count(*) from pg_class where relkind = 'r' and relname = $1";
    Ok(sqlx::query_scalar(count).bind(name).fetch_one(db).await?)
}

#[tokio::test]
async fn the_service_waits_for_the_migration_by_the_owner_and_needs_no_ownership() -> Result<()> {
    let database = TestDatabase::empty().await?;
    let (owner, app) = roles(&database).await?;
    let runtime = Runtime::new("test");
    let serving = Database::open(&runtime, &app, migrations())?;
    timeout(Duration::from_millis(300), serving.ready()).await.expect_err("a missing schema");

    let output = Migrate {}.run(&owner, &migrations()).await?;

    assert_eq!(output, "The database is up to date");
    timeout(Duration::from_secs(10), serving.ready()).await?;
    let db = serving.pool();
    add_expired_partition(&owner).await?;
    let folder = test_dir()?.join(Uuid::now_v7().to_string());
    let quota = Quota::new(db, QuotaConfig::default());
    let artifacts = Artifacts::open(&runtime, db, &artifacts(&folder)?, quota)?;
    assert_eq!(partitions(db, "instance_2021_05").await?, 1);
    enforce_retention(db, &artifacts).await?;
    assert_eq!(partitions(db, "instance_2021_05").await?, 0);
    sqlx::query("drop table execution").execute(db).await.expect_err("a table of the owner");
    // A repeated migration has no effect.
    Migrate {}.run(&owner, &migrations()).await?;
    runtime.stop(Duration::from_secs(5)).await
}

#[tokio::test]
async fn a_replica_of_the_previous_release_accepts_a_newer_schema() -> Result<()> {
    let database = TestDatabase::create("execution", &migrations()).await?;
    let db = PgPool::connect_with(database.options).await?;
    sqlx::query(
        "insert into _sqlx_migrations (version, description, success, checksum, execution_time)
         values (999, 'of the next release', true, '', 0)",
    )
    .execute(&db)
    .await?;
    migrations().run(&db).await?;
    Ok(())
}
