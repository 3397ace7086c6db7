//! A PostgreSQL database for each test, cloned from a migrated template and dropped after the test.

use std::{mem, path::PathBuf, str::FromStr, time::Duration};

use anyhow::{Context, Result};
use sqlx::{
    AssertSqlSafe, Connection, PgConnection, migrate::Migrator, postgres::PgConnectOptions,
};
use tokio::time::sleep;
use uuid::Uuid;

use crate::failures;

/// Interval in which databases are dropped, several at once: the first drop makes PostgreSQL write
/// its buffers, and the next ones are fast.
const DROP_INTERVAL: Duration = Duration::from_secs(10);

/// Advisory lock that serializes the creation of templates between test processes.
const TEMPLATE_LOCK: i64 = 0x0061_7373_6179;

/// A migrated database of one test.
pub struct TestDatabase {
    /// Connection options.
    pub options: PgConnectOptions,
    /// Connection URL.
    pub url: String,
}

impl TestDatabase {
    /// Creates a database with the given schema. The first test also creates the template.
    pub async fn create(schema: &str, migrations: &Migrator) -> Result<Self> {
        failures::watch();
        let server = server_url()?;
        let mut connection = PgConnection::connect(&server).await?;
        let template = template(&mut connection, schema, migrations).await?;
        let name = format!("test_{schema}_{}", Uuid::now_v7().simple());
        // Without a log to write, a copy of the files takes half of the time.
        let options = format!(" template {template} strategy file_copy");
        Self::make(connection, &server, &name, &options).await
    }

    /// Creates an empty database.
    pub async fn empty() -> Result<Self> {
        failures::watch();
        let server = server_url()?;
        let connection = PgConnection::connect(&server).await?;
        let name = format!("test_{}", Uuid::now_v7().simple());
        Self::make(connection, &server, &name, "").await
    }

    /// Creates a database. The connection stays open until the process ends; see [`drop_unused`].
    async fn make(
        mut connection: PgConnection,
        server: &str,
        name: &str,
        options: &str,
    ) -> Result<Self> {
        execute(&mut connection, format!("set application_name to {name}")).await?;
        execute(&mut connection, format!("create database {name}{options}")).await?;
        mem::forget(connection);

        let (before, after) = server.split_once("/postgres").context("the server's URL")?;
        let url = format!("{before}/{name}{after}");
        Ok(Self { options: PgConnectOptions::from_str(&url)?, url })
    }
}

/// Periodically drops databases of tests whose process has ended. Together they might fill the
/// disk.
pub async fn drop_unused(server: &PgConnectOptions) -> Result<()> {
    let mut connection = PgConnection::connect_with(server).await?;
    let unused = "select d.datname from pg_database d
                  where starts_with(d.datname, 'test_') and not exists
                      (select from pg_stat_activity a where a.application_name = d.datname)";
    loop {
        sleep(DROP_INTERVAL).await;
        let names: Vec<String> = sqlx::query_scalar(unused).fetch_all(&mut connection).await?;
        for name in names {
            execute(&mut connection, format!("drop database {name} with (force)")).await?;
        }
    }
}

/// Returns the directory for files of tests, which is removed after the test run.
pub fn test_dir() -> Result<PathBuf> {
    Ok(variable("ASSAY_TEST_DIR")?.into())
}

fn server_url() -> Result<String> {
    variable("ASSAY_TEST_DATABASE_URL")
}

#[expect(clippy::disallowed_methods, reason = "a test has no parsed configuration")]
fn variable(name: &str) -> Result<String> {
    std::env::var(name).with_context(|| {
        format!("{name} is not set; run tests as `make test` does, or within `make servers`")
    })
}

/// Returns the name of the template with exactly these migrations, and creates it if missing.
async fn template(
    connection: &mut PgConnection,
    schema: &str,
    migrations: &Migrator,
) -> Result<String> {
    let checksums = migrations.iter().flat_map(|migration| migration.checksum.iter());
    let version = checksums.fold(0_u64, |hash, byte| hash.rotate_left(5) ^ u64::from(*byte));
    let name = format!("template_{schema}_{version:016x}");

    sqlx::query("select pg_advisory_lock($1)")
        .bind(TEMPLATE_LOCK)
        .execute(&mut *connection)
        .await?;
    let exists = "select exists (select from pg_database where datname = $1)";
    if !sqlx::query_scalar(exists).bind(&name).fetch_one(&mut *connection).await? {
        let draft = format!("draft_{}", Uuid::now_v7().simple());
        execute(connection, format!("create database {draft}")).await?;
        let options = PgConnectOptions::from_str(&server_url()?)?.database(&draft);
        let mut database = PgConnection::connect_with(&options).await?;
        migrations.run(&mut database).await?;
        database.close().await?;
        execute(connection, format!("alter database {draft} rename to {name}")).await?;
    }
    sqlx::query("select pg_advisory_unlock($1)").bind(TEMPLATE_LOCK).execute(connection).await?;
    Ok(name)
}

async fn execute(connection: &mut PgConnection, statement: String) -> Result<()> {
    sqlx::query(AssertSqlSafe(statement)).execute(connection).await?;
    Ok(())
}
