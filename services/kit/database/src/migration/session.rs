//! The session that migrates a database.

use std::io;

use sqlx::{
    AssertSqlSafe, Connection as _, Error, PgConnection, PgPool,
    migrate::{MigrateError, Migrator},
};
use tokio::time::timeout;

use crate::ACQUIRE_TIMEOUT;

/// Lock of the program that migrates. The others attempt to acquire it again and again instead of
/// waiting for it: the build of an index would wait for their transactions.
const LOCK: &str = "select pg_try_advisory_lock(hashtextextended('assay migration', 0))";

/// Limits of a migration in a transaction, and of one outside.
const LIMITED: &str = "set lock_timeout = '2s'";
const UNLIMITED: &str = "set lock_timeout = 0";

/// SQLSTATE of a wait for a lock that took too long.
const LOCK_NOT_AVAILABLE: &str = "55P03";

/// Applies the missing migrations. Returns false if another program is doing so.
pub(super) async fn migrate(pool: &PgPool, migrations: &Migrator) -> Result<bool, MigrateError> {
    // A connection of its own, whose settings and lock end with it.
    let options = pool.connect_options();
    let connected = PgConnection::connect_with(&options);
    let mut connection = match timeout(ACQUIRE_TIMEOUT, connected).await {
        Ok(connected) => connected?,
        Err(_) => return Err(Error::PoolTimedOut.into()),
    };
    if is_standby(&mut connection).await? {
        return Err(Error::Io(io::Error::other("the server is a standby")).into());
    }
    if !sqlx::query_scalar(LOCK).fetch_one(&mut connection).await? {
        connection.close().await?;
        return Ok(false);
    }
    sqlx::query("set statement_timeout = 0").execute(&mut connection).await?;
    let done = apply(&mut connection, migrations).await;
    if let Err(MigrateError::ExecuteMigration(error, version)) = &done
        && is_lock_timeout(error)
    {
        let sessions = open_transactions(&mut connection).await?;
        tracing::warn!(
            version,
            sessions,
            "the migration waits for locks that another session holds; retrying"
        );
    }
    // Dropping the connection would do, too.
    let _ = connection.close().await;
    done.map(|()| true)
}

async fn is_standby(connection: &mut PgConnection) -> Result<bool, Error> {
    sqlx::query_scalar("select pg_is_in_recovery()").fetch_one(connection).await
}

async fn apply(connection: &mut PgConnection, migrations: &Migrator) -> Result<(), MigrateError> {
    drop_failed_indexes(connection, migrations).await?;
    for migration in migrations.iter() {
        if !migration.no_tx {
            continue;
        }
        sqlx::query(LIMITED).execute(&mut *connection).await?;
        migrations.run_direct(Some(migration.version - 1), connection, false).await?;
        sqlx::query(UNLIMITED).execute(&mut *connection).await?;
        migrations.run_direct(Some(migration.version), connection, false).await?;
    }
    sqlx::query(LIMITED).execute(&mut *connection).await?;
    migrations.run_direct(None, connection, false).await
}

/// Drops indexes that a migration began to build, but did not complete. PostgreSQL keeps them, so that
/// `if not exists` would skip the next build.
async fn drop_failed_indexes(
    connection: &mut PgConnection,
    migrations: &Migrator,
) -> Result<(), Error> {
    let failed: Vec<String> = sqlx::query_scalar(
        "select relname from pg_index join pg_class on oid = indexrelid
         where not indisvalid and relkind = 'i' and relnamespace = current_schema()::regnamespace",
    )
    .fetch_all(&mut *connection)
    .await?;
    let is_ours = |name: &String| {
        let mut outside = migrations.iter().filter(|migration| migration.no_tx);
        outside.any(|migration| migration.sql.as_str().contains(&format!(" {name} ")))
    };
    for name in failed.into_iter().filter(is_ours) {
        tracing::warn!(index = name, "dropping an index whose build has failed");
        let drop = sqlx::query(AssertSqlSafe(format!("drop index concurrently \"{name}\"")));
        drop.execute(&mut *connection).await?;
    }
    Ok(())
}

/// Describes the sessions with the oldest transactions, which probably hold the locks.
async fn open_transactions(connection: &mut PgConnection) -> Result<String, Error> {
    let sessions = sqlx::query_scalar(
        "select coalesce(string_agg(format('%s, process %s, since %s: %s', application_name, pid,
                                           xact_start, left(query, 60)), '; '), 'unknown')
         from (select * from pg_stat_activity
               where datname = current_database() and pid <> pg_backend_pid()
                 and xact_start is not null
               order by xact_start limit 3) as oldest",
    );
    sessions.fetch_one(connection).await
}

pub(super) fn is_lock_timeout(error: &Error) -> bool {
    let database = error.as_database_error();
    database.is_some_and(|error| error.code().as_deref() == Some(LOCK_NOT_AVAILABLE))
}
