//! Locks of other transactions.

use std::pin::Pin;

use anyhow::{Result, bail};
use assay_testkit::eventually;

use super::World;

impl World {
    /// Runs work until it waits for a lock of another transaction. Fails if it ends before.
    pub(crate) async fn waits_for_lock<F: Future>(&self, work: Pin<&mut F>) -> Result<()> {
        let waits = "select count(*) from pg_stat_activity
             where datname = current_database() and wait_event_type = 'Lock'";
        let is_waiting = async || (self.count(waits).await.ok()? > 0).then_some(());
        tokio::select! {
            _ = work => bail!("it did not wait for a lock"),
            () = eventually("a wait for a lock", is_waiting) => Ok(()),
        }
    }
}
