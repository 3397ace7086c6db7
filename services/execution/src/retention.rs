//! Retention: what projects do not keep any more, and the partitions that the rest is in.
//!
//! An execution whose time has come expires: from then on its results and artifacts are nobody's.
//! They are removed in the background, a whole partition at once where all in it has expired, else
//! in small batches. The execution and its reports stay.

mod partition;
mod store;

use std::time::Duration;

use assay_events::{Handler, Received};
use assay_proto::{Fault, events::RetentionChanged};
use assay_runtime::{Database, Runtime};
use sqlx::{Connection, PgPool, PgTransaction};
use tokio::time::sleep;

use crate::artifact::Artifacts;

/// How often there is something to do at most.
const PERIOD: Duration = Duration::from_mins(10);

/// How soon it is tried again to reach the database.
const PAUSE: Duration = Duration::from_secs(3);

/// How many instances are removed at once.
const BATCH: i64 = 5000;

/// Remembers how long projects keep their results.
pub(crate) struct Reactions;

impl Handler for Reactions {
    async fn handle(&self, tx: &mut PgTransaction<'_>, event: &Received) -> Result<(), Fault> {
        let changed: RetentionChanged = event.data()?;
        store::remember(tx, event.customer(), &changed).await
    }
}

/// Keeps up with time. The program is ready when there are partitions for what is to come.
pub(crate) fn spawn(runtime: &Runtime, database: &Database, artifacts: &Artifacts) {
    let (database, artifacts, stopping) = (database.clone(), artifacts.clone(), runtime.stopping());
    let gate = runtime.gate("partitions");
    runtime.spawn("retention", async move {
        let work = async {
            database.ready().await;
            while let Err(fault) = partition::make_ahead(database.pool()).await {
                tracing::warn!(%fault, "there are no partitions yet");
                sleep(PAUSE).await;
            }
            gate.open();
            loop {
                if let Err(fault) = enforce_retention(database.pool(), &artifacts).await {
                    tracing::warn!(%fault, "not all was removed that is not kept any more");
                }
                sleep(PERIOD).await;
            }
        };
        stopping.run_until_cancelled(work).await;
        Ok(())
    });
}

/// Does now what there is to do: makes partitions ahead, and removes what is not kept any more. Of
/// several replicas one does it.
pub async fn enforce_retention(db: &PgPool, artifacts: &Artifacts) -> Result<(), Fault> {
    partition::make_ahead(db).await?;
    let mut alone = db.acquire().await?.detach();
    if !store::try_to_be_alone(&mut alone).await? {
        return Ok(());
    }
    while store::expire(db).await? > 0 {}
    partition::drop_expired(db).await?;
    prune(db, artifacts).await?;
    alone.close().await?;
    Ok(())
}

/// Removes what is left of executions that have expired.
async fn prune(db: &PgPool, artifacts: &Artifacts) -> Result<(), Fault> {
    loop {
        let executions = store::expired(db).await?;
        if executions.is_empty() {
            return Ok(());
        }
        for execution in executions {
            let (customer, id) = (execution.customer_id, execution.id);
            artifacts.remove(customer, id).await?;
            let (mut reports, mut instances) = (Vec::new(), 0);
            for (report, count) in store::reports(db, customer, id).await? {
                reports.push(report);
                instances += i64::from(count);
                if instances >= BATCH {
                    store::remove(db, customer, &std::mem::take(&mut reports)).await?;
                    instances = 0;
                }
            }
            store::remove(db, customer, &reports).await?;
            store::note_pruned(db, customer, id).await?;
        }
    }
}
