//! Removes notifications past their retention, and the remains of deleted webhooks and customers.

use std::time::Duration;

use assay_database::Database;
use assay_events::Nats;
use assay_fair::Throttle;
use assay_proto::Fault;
use assay_runtime::Runtime;
use sqlx::PgPool;
use tokio::time::sleep;

use crate::{
    deletion::{self, remove_all},
    delivery, notification, webhook,
};

/// Pause between two runs.
const PERIOD: Duration = Duration::from_secs(30);

/// Removes notifications older than `age`, deleted webhooks and deleted customers in regular runs.
/// Every replica does so, and skips rows that another one is removing.
pub(crate) fn spawn(runtime: &Runtime, database: &Database, nats: &Nats, age: Duration) {
    let (database, nats, stopping) = (database.clone(), nats.client().clone(), runtime.stopping());
    runtime.spawn("retention", async move {
        let work = async {
            database.ready().await;
            loop {
                match prune(database.pool(), age).await {
                    Ok(0) => {}
                    Ok(count) => tracing::info!(count, "removed {count} notifications"),
                    Err(fault) => {
                        tracing::warn!(error = %fault, "cannot remove notifications; will retry");
                    }
                }
                if let Err(error) = deletion::remove_subscribers(database.pool(), &nats).await {
                    let error = format!("{error:#}");
                    tracing::info!(
                        error,
                        "cannot remove subscribers of a deleted customer; will retry"
                    );
                }
                sleep(PERIOD).await;
            }
        };
        stopping.run_until_cancelled(work).await;
        Ok(())
    });
}

/// Removes notifications older than `age`, deleted webhooks with their deliveries, and all rows of deleted
/// customers. Returns the number of notifications.
pub async fn prune(db: &PgPool, age: Duration) -> Result<u64, Fault> {
    let mut throttle = Throttle::within(10..=2000);
    remove_all(&mut throttle, |limit| webhook::store::prune(db, limit)).await?;
    remove_all(&mut throttle, |limit| webhook::store::prune_deleted(db, limit)).await?;
    remove_all(&mut throttle, |limit| delivery::attempt::prune(db, limit)).await?;
    let deleted = deletion::purge(db, &mut throttle).await?;
    let old = remove_all(&mut throttle, |limit| notification::store::prune(db, age, limit));
    Ok(deleted + old.await?)
}
