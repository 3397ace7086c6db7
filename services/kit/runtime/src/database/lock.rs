//! Locks for work that only one replica of a service does at a time.

use assay_proto::Fault;
use sqlx::{Connection as _, PgConnection, PgPool};

/// A PostgreSQL advisory lock, held by a connection of its own.
///
/// PostgreSQL closes the connection of a program that is frozen or has vanished, which releases the
/// lock.
#[derive(Debug)]
pub struct AdvisoryLock(PgConnection);

impl AdvisoryLock {
    /// Acquires the lock with this name; `None` if another replica holds it.
    pub async fn try_acquire(db: &PgPool, name: &str) -> Result<Option<Self>, Fault> {
        let mut connection = db.acquire().await?.detach();
        sqlx::query("set idle_session_timeout = '10min'").execute(&mut connection).await?;
        let locked = sqlx::query_scalar("select pg_try_advisory_lock(hashtextextended($1, 0))");
        let locked: bool = locked.bind(name).fetch_one(&mut connection).await?;
        if locked {
            return Ok(Some(Self(connection)));
        }
        connection.close().await?;
        Ok(None)
    }

    /// Fails if the lock is lost. Must be called at least every few minutes, or PostgreSQL closes
    /// the connection.
    pub async fn check(&mut self) -> Result<(), Fault> {
        Ok(self.0.ping().await?)
    }

    /// Releases the lock.
    pub async fn release(self) -> Result<(), Fault> {
        Ok(self.0.close().await?)
    }
}
