//! Removes notifications that are too old, and what is left of what was deleted.

use std::time::{Duration, Instant};

use assay_events::Nats;
use assay_proto::Fault;
use assay_runtime::{Database, Pace, Runtime};
use sqlx::PgPool;
use tokio::time::sleep;

use crate::{deletion, notification, webhook};

/// How often it is looked for something to remove.
const PERIOD: Duration = Duration::from_secs(30);

/// Removes rows, some in each statement, until none is left; returns their number.
pub(crate) async fn remove_all<F: Future<Output = Result<u64, Fault>>>(
    pace: &mut Pace,
    remove: impl Fn(i64) -> F,
) -> Result<u64, Fault> {
    let mut count = 0;
    loop {
        let (begun, limit) = (Instant::now(), pace.rows());
        let removed = remove(limit).await?;
        count += removed;
        if removed < limit.unsigned_abs() {
            return Ok(count);
        }
        pace.learn(begun.elapsed()).await;
    }
}

/// Removes what is older than `age`, and what is left of what was deleted, every now and then. Of
/// several replicas each one does, and they pass over what another one removes.
pub(crate) fn spawn(runtime: &Runtime, database: &Database, nats: &Nats, age: Duration) {
    let (database, nats, stopping) = (database.clone(), nats.client().clone(), runtime.stopping());
    runtime.spawn("retention", async move {
        let work = async {
            database.ready().await;
            loop {
                match prune(database.pool(), age).await {
                    Ok(0) => {}
                    Ok(count) => tracing::info!(count, "notifications were removed"),
                    Err(fault) => tracing::warn!(%fault, "notifications cannot be removed"),
                }
                if let Err(error) = deletion::withdraw(database.pool(), &nats).await {
                    let error = format!("{error:#}");
                    tracing::info!(error, "a deleted customer is left in NATS; trying again");
                }
                sleep(PERIOD).await;
            }
        };
        stopping.run_until_cancelled(work).await;
        Ok(())
    });
}

/// Removes all that is older than `age`, what webhooks were sent that are deleted, and what is left
/// of deleted customers; returns the number of notifications.
pub async fn prune(db: &PgPool, age: Duration) -> Result<u64, Fault> {
    let mut pace = Pace::within(10..=2000);
    remove_all(&mut pace, |limit| webhook::store::prune(db, limit)).await?;
    let deleted = deletion::purge(db, &mut pace).await?;
    let old = remove_all(&mut pace, |limit| notification::store::prune(db, age, limit));
    Ok(deleted + old.await?)
}
