//! Database connections outside the pool. Each holds an advisory lock, so that only one replica of
//! a service does the work.

use std::{io::ErrorKind, time::Duration};

use sqlx::{Error, PgExecutor, PgPool, postgres::PgConnectOptions};

/// Maximum duration of a statement of this crate.
pub(crate) const STATEMENT_TIMEOUT: Duration = Duration::from_secs(5);

/// Interval of attempts to connect or to acquire a lock.
pub(crate) const RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// Returns options of a connection to the database of a pool.
///
/// PostgreSQL closes the session, and releases the lock, of a program that is frozen: a working one
/// uses the connection about every second.
pub(crate) fn options(pool: &PgPool, name: &str) -> PgConnectOptions {
    let options = PgConnectOptions::clone(&pool.connect_options());
    options.application_name(name).options([
        ("statement_timeout", "10s"),
        ("idle_session_timeout", "5s"),
        ("idle_in_transaction_session_timeout", "5s"),
    ])
}

/// Acquires an advisory lock until the connection ends. Returns false if it is held elsewhere.
pub(crate) async fn try_lock(db: impl PgExecutor<'_>, name: &str) -> Result<bool, Error> {
    let lock = sqlx::query_scalar("select pg_try_advisory_lock(hashtextextended($1, 0))");
    within(STATEMENT_TIMEOUT, lock.bind(name).fetch_one(db)).await
}

/// Limits the time of a statement. A frozen server would not even report an error.
pub(crate) async fn within<T>(
    limit: Duration,
    work: impl Future<Output = Result<T, Error>>,
) -> Result<T, Error> {
    let done = tokio::time::timeout(limit, work).await;
    done.unwrap_or_else(|_| Err(Error::Io(ErrorKind::TimedOut.into())))
}
