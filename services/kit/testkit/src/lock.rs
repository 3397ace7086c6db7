//! Locks of other transactions.

use std::pin::Pin;

use anyhow::{Result, bail};
use sqlx::PgPool;

use crate::eventually;

/// Runs work until a transaction in this database waits for a lock of another one. Fails if the work ends before.
pub async fn waits_for_lock<F: Future>(db: &PgPool, work: Pin<&mut F>) -> Result<()> {
    let waits = "select exists (
         select from pg_stat_activity
         where datname = current_database() and wait_event_type = 'Lock'
     )";
    let is_waiting = async || {
        let waits: bool = sqlx::query_scalar(waits).fetch_one(db).await.ok()?;
        waits.then_some(())
    };
    tokio::select! {
        _ = work => bail!("it did not wait for a lock"),
        () = eventually("a wait for a lock", is_waiting) => Ok(()),
    }
}
