//! Deletion of expired rows.

use std::time::Duration;

use assay_database::Database;
use assay_proto::Fault;
use assay_runtime::Runtime;
use sqlx::PgPool;
use tokio::time::sleep;

use crate::{audit, invitation, mail, password_link, revocation, signing_key, throttle};

const PERIOD: Duration = Duration::from_mins(10);

/// Starts to delete expired rows periodically. Replicas may do so concurrently.
pub(crate) fn spawn(runtime: &Runtime, database: &Database, audit_retention: Duration) {
    let (database, stopping) = (database.clone(), runtime.stopping());
    runtime.spawn("upkeep", async move {
        let work = async {
            database.ready().await;
            loop {
                if let Err(fault) = delete_expired(database.pool(), audit_retention).await {
                    tracing::warn!(%fault, "failed to delete expired rows; will retry");
                }
                sleep(PERIOD).await;
            }
        };
        stopping.run_until_cancelled(work).await;
        Ok(())
    });
}

async fn delete_expired(db: &PgPool, audit_retention: Duration) -> Result<(), Fault> {
    revocation::prune(db).await?;
    signing_key::store::prune(db).await?;
    password_link::prune(db).await?;
    mail::prune(db).await?;
    throttle::prune(db).await?;
    invitation::store::prune(db).await?;
    while audit::prune(db, audit_retention).await? {}
    Ok(())
}
