//! The task that publishes the ends of known failures. All replicas of the service may do this at the
//! same time.

use std::time::Duration;

use assay_events::publish_all;
use assay_ledger::known_failure::{event::expired, store};
use assay_proto::Fault;
use assay_runtime::{Database, Runtime, begin};
use sqlx::PgPool;
use tokio::time::sleep;

/// Interval between rounds.
const INTERVAL: Duration = Duration::from_secs(1);

/// Starts the task.
pub(crate) fn spawn(runtime: &Runtime, database: &Database) {
    let (database, stopping) = (database.clone(), runtime.stopping());
    runtime.spawn("expiry", async move {
        let work = async {
            database.ready().await;
            loop {
                if let Err(fault) = publish_expired(database.pool()).await {
                    tracing::warn!(error = %fault, "cannot publish the ends of known failures");
                }
                sleep(INTERVAL).await;
            }
        };
        stopping.run_until_cancelled(work).await;
        Ok(())
    });
}

/// Publishes the ends of all known failures that have expired.
pub async fn publish_expired(db: &PgPool) -> Result<(), Fault> {
    loop {
        let mut tx = begin(db).await?;
        let ended = store::expire(&mut tx).await?;
        if ended.is_empty() {
            return Ok(());
        }
        let ended = ended.into_iter();
        publish_all(&mut tx, ended.map(|(customer, project, id)| expired(customer, project, id)))
            .await?;
        tx.commit().await?;
    }
}
