//! Migrations beside other sessions that use the database.

use std::{borrow::Cow, time::Duration};

use anyhow::Result;
use assay_database::{DatabaseConfig, Migrate, PoolConfig};
use assay_testkit::{TestDatabase, eventually};
use sqlx::{
    Connection as _, PgConnection, PgPool, SqlSafeStr,
    migrate::{Migration, MigrationType, Migrator},
};
use tokio::{task::JoinHandle, time::timeout};

/// Maximum time that a read waits for a migration: its wait for a lock, and a little more.
const READ: Duration = Duration::from_secs(4);

fn migration(version: i64, sql: &'static str) -> Migration {
    let no_tx = sql.starts_with("-- no-transaction");
    let (kind, name) = (MigrationType::Simple, Cow::Borrowed("test"));
    Migration::new(version, name, kind, sql.into_sql_str(), no_tx)
}

/// A database with a table `record`, and migrations beyond that.
struct World {
    url: String,
    own: PgPool,
}

impl World {
    async fn new() -> Result<Self> {
        let database = TestDatabase::empty().await?;
        let own = PgPool::connect_with(database.options).await?;
        let table = "create table record as select n as id from generate_series(1, 1000) as n";
        sqlx::query(table).execute(&own).await?;
        Ok(Self { url: database.url, own })
    }

    async fn connect(&self) -> Result<PgConnection> {
        Ok(PgConnection::connect(&self.url).await?)
    }

    /// Runs the command `migrate` with these migrations, on a database with options.
    #[expect(clippy::disallowed_methods, reason = "the command has no runtime")]
    fn migrate(&self, options: &str, migrations: &[&'static str]) -> JoinHandle<Result<()>> {
        let separator = if self.url.contains('?') { '&' } else { '?' };
        let config = DatabaseConfig {
            database_url: format!("{}{separator}{options}", self.url).into(),
            pool: PoolConfig { database_connections: 2 },
            database_migrate: true,
        };
        let numbered = (1..).zip(migrations);
        let all = numbered.map(|(version, sql)| migration(version, sql)).collect();
        let migrations = Migrator::with_migrations(all);
        tokio::spawn(async move { Migrate {}.run(&config, &migrations).await.map(drop) })
    }

    /// Waits until a migration waits for a lock.
    async fn wait_until_blocked(&self) {
        let blocked = "select count(*) from pg_stat_activity
                       where datname = current_database() and wait_event_type = 'Lock'";
        eventually("a migration that waits", || async {
            let waiting = sqlx::query_scalar(blocked).fetch_one(&self.own);
            waiting.await.is_ok_and(|count: i64| count > 0).then_some(())
        })
        .await;
    }

    async fn read(&self) -> Result<i64> {
        let count = sqlx::query_scalar("select count(*) from record").fetch_one(&self.own);
        Ok(timeout(READ, count).await??)
    }
}

#[tokio::test]
async fn reads_are_answered_while_a_migration_waits_for_a_dump() -> Result<()> {
    let world = World::new().await?;
    let mut dump = world.connect().await?;
    let mut dumping = dump.begin().await?;
    sqlx::query("lock table record in access share mode").execute(&mut *dumping).await?;
    let migrated = world.migrate("", &["alter table record add column note text"]);
    for _ in 0..2 {
        world.wait_until_blocked().await;
        assert_eq!(world.read().await?, 1000);
        assert!(!migrated.is_finished());
    }
    dumping.rollback().await?;
    migrated.await??;
    sqlx::query("select note from record").execute(&world.own).await?;
    Ok(())
}

#[tokio::test]
async fn a_migration_may_take_longer_than_statements_of_the_service() -> Result<()> {
    let world = World::new().await?;
    let migrated = world.migrate(
        "options=-c%20statement_timeout%3D300",
        &["do $$ begin perform pg_sleep(1); end $$"],
    );
    migrated.await??;
    Ok(())
}

const INDEX: &str = "-- no-transaction
create unique index concurrently if not exists record_id_key on record (id)";

#[tokio::test]
async fn an_index_is_built_beside_writes() -> Result<()> {
    let world = World::new().await?;
    let mut writer = world.connect().await?;
    let mut writing = writer.begin().await?;
    sqlx::query("insert into record (id) values (2000)").execute(&mut *writing).await?;
    let migrated = world.migrate("", &["select 1", INDEX, "select 2"]);
    world.wait_until_blocked().await;
    let write = sqlx::query("insert into record (id) values (2001)").execute(&world.own);
    timeout(READ, write).await??;
    writing.commit().await?;
    migrated.await??;
    assert!(is_valid(&world.own).await?);
    Ok(())
}

#[tokio::test]
async fn an_index_whose_build_has_failed_is_built_again() -> Result<()> {
    let world = World::new().await?;
    let twice = "insert into record (id) values (1)";
    sqlx::query(twice).execute(&world.own).await?;
    assert!(world.migrate("", &[INDEX]).await?.is_err(), "a value is there twice");
    assert!(!is_valid(&world.own).await?);

    let repair = "delete from record where ctid = (select max(ctid) from record where id = 1)";
    sqlx::query(repair).execute(&world.own).await?;
    world.migrate("", &[INDEX]).await??;
    assert!(is_valid(&world.own).await?);
    Ok(())
}

async fn is_valid(db: &PgPool) -> Result<bool> {
    let valid = "select indisvalid from pg_index where indexrelid = 'record_id_key'::regclass";
    Ok(sqlx::query_scalar(valid).fetch_one(db).await?)
}

#[tokio::test]
async fn replicas_migrate_one_after_the_other() -> Result<()> {
    let world = World::new().await?;
    let migrations = ["alter table record add column note text", INDEX];
    let all = [(); 4].map(|()| world.migrate("", &migrations));
    for migrated in all {
        migrated.await??;
    }
    assert!(is_valid(&world.own).await?);
    Ok(())
}
