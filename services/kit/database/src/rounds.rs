//! Tasks that work in rounds.

use std::{future::Future, time::Duration};

use assay_proto::Fault;
use assay_runtime::Runtime;
use sqlx::PgPool;
use tokio::time::sleep;

use crate::Database;

impl Database {
    /// Starts a task that works in rounds with pauses between them, from the time when the database is ready
    /// until the program stops. If rounds fail, others follow; the first failure after a success is logged with the
    /// text `failure`.
    pub fn every<R>(
        &self,
        runtime: &Runtime,
        name: &'static str,
        pause: Duration,
        failure: &'static str,
        round: impl Fn(PgPool) -> R + Send + Sync + 'static,
    ) where
        R: Future<Output = Result<(), Fault>> + Send,
    {
        let (database, stopping) = (self.clone(), runtime.stopping());
        runtime.spawn(name, async move {
            let work = async {
                database.ready().await;
                let mut fails = false;
                loop {
                    let done = round(database.pool().clone()).await;
                    let failed_before = std::mem::replace(&mut fails, done.is_err());
                    if let Err(fault) = done
                        && !failed_before
                    {
                        tracing::warn!(error = %fault, "{failure}; will retry");
                    }
                    sleep(pause).await;
                }
            };
            stopping.run_until_cancelled(work).await;
            Ok(())
        });
    }
}
