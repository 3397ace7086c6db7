//! Work that one replica of a service does at a time.

use assay_proto::Fault;
use sqlx::{Connection as _, PgConnection, PgPool};

/// The right to do some work alone: a connection of its own that holds a lock.
///
/// PostgreSQL ends the connection of a program that is frozen or has vanished, so that another one
/// can go on.
#[derive(Debug)]
pub struct Alone(PgConnection);

impl Alone {
    /// Becomes the one that does this work, unless another one does.
    pub async fn at(db: &PgPool, work: &str) -> Result<Option<Self>, Fault> {
        let mut connection = db.acquire().await?.detach();
        sqlx::query("set idle_session_timeout = '10min'").execute(&mut connection).await?;
        let locked = sqlx::query_scalar("select pg_try_advisory_lock(hashtextextended($1, 0))");
        let locked: bool = locked.bind(work).fetch_one(&mut connection).await?;
        if locked {
            return Ok(Some(Self(connection)));
        }
        connection.close().await?;
        Ok(None)
    }

    /// Shows that the work goes on, every few minutes at least. Fails if it is another one's by now.
    pub async fn keep(&mut self) -> Result<(), Fault> {
        Ok(self.0.ping().await?)
    }

    /// Lets another one do the work.
    pub async fn end(self) -> Result<(), Fault> {
        Ok(self.0.close().await?)
    }
}
