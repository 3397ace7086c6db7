//! Connections to the database besides the pool: they hold a lock for as long as they last, so that
//! of several replicas one does the work.

use std::{io::ErrorKind, time::Duration};

use sqlx::{Error, PgExecutor, PgPool, postgres::PgConnectOptions};

/// How long the database may take with one of our own statements.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);

/// How long to wait before another attempt to get the lock, or a connection.
pub(crate) const PAUSE: Duration = Duration::from_secs(1);

/// How to open a connection to the database of a pool that is not one of the pool's.
///
/// Beyond the limits of the pool's sessions, statements end before we lose patience, so that a slow
/// one does not cost the connection; and PostgreSQL frees the lock of a program that is frozen: one
/// that works uses the connection every second or so.
pub(crate) fn options(pool: &PgPool, name: &str) -> PgConnectOptions {
    let options = PgConnectOptions::clone(&pool.connect_options());
    options.application_name(name).options([
        ("statement_timeout", "10s"),
        ("idle_session_timeout", "5s"),
        ("idle_in_transaction_session_timeout", "5s"),
    ])
}

/// Takes a lock for as long as the connection lasts. False if somebody else has it.
pub(crate) async fn try_lock(db: impl PgExecutor<'_>, name: &str) -> Result<bool, Error> {
    let lock = sqlx::query_scalar("select pg_try_advisory_lock(hashtextextended($1, 0))");
    within(PATIENCE, lock.bind(name).fetch_one(db)).await
}

/// Gives the database a limited time: when it is frozen, it does not even say so.
pub(crate) async fn within<T>(
    limit: Duration,
    work: impl Future<Output = Result<T, Error>>,
) -> Result<T, Error> {
    let done = tokio::time::timeout(limit, work).await;
    done.unwrap_or_else(|_| Err(Error::Io(ErrorKind::TimedOut.into())))
}
