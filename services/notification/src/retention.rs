//! Removes notifications that are too old.

use std::time::Duration;

use assay_proto::Fault;
use assay_runtime::{Database, Runtime};
use sqlx::PgPool;
use tokio::time::sleep;

use crate::{notification, webhook};

/// How often it is looked for old notifications.
const PERIOD: Duration = Duration::from_mins(10);

/// How many are removed by one statement, so that none takes long.
const BATCH: i64 = 1000;

/// Removes what is older than `age`, every now and then. Of several replicas each one does, and they
/// pass over what another one removes.
pub(crate) fn spawn(runtime: &Runtime, database: &Database, age: Duration) {
    let (database, stopping) = (database.clone(), runtime.stopping());
    runtime.spawn("retention", async move {
        let work = async {
            database.ready().await;
            loop {
                match prune(database.pool(), age).await {
                    Ok(0) => {}
                    Ok(count) => tracing::info!(count, "old notifications were removed"),
                    Err(fault) => tracing::warn!(%fault, "old notifications cannot be removed"),
                }
                sleep(PERIOD).await;
            }
        };
        stopping.run_until_cancelled(work).await;
        Ok(())
    });
}

/// Removes all that is older than `age`, and what webhooks were sent that are deleted; says how many
/// notifications that were.
pub async fn prune(db: &PgPool, age: Duration) -> Result<u64, Fault> {
    while webhook::store::prune(db, BATCH).await? == BATCH.unsigned_abs() {}
    let mut count = 0;
    loop {
        let removed = notification::store::prune(db, age, BATCH).await?;
        count += removed;
        if removed < BATCH.unsigned_abs() {
            return Ok(count);
        }
    }
}
