//! Retention: results that have expired, and the partitions of those that are kept.
//!
//! When an execution expires, its results and artifacts are no longer shown. They are removed in
//! the background: a whole partition at once if all its executions have expired, otherwise in small
//! batches. The execution and its reports are kept.

mod partition;
mod store;

use std::time::{Duration, Instant};

use assay_database::{Database, exclusively};
use assay_events::{EventType, Handler, KnownRetention, Received};
use assay_fair::Throttle;
use assay_ledger::{deletion, removal};
use assay_proto::{CustomerId, ExecutionId, Fault, ProjectId, events::RetentionChanged};
use assay_runtime::Runtime;
use sqlx::{PgPool, PgTransaction};
use tokio::time::sleep;

use crate::{artifact::Artifacts, insight, monitor, testrail};

/// Interval between the runs of the task.
const PERIOD: Duration = Duration::from_mins(10);

/// Delay before another attempt to create the first partitions.
const RETRY_DELAY: Duration = Duration::from_secs(3);

/// Applies the events about the retention time of projects.
pub(crate) struct Reactions;

impl Handler for Reactions {
    async fn handle(&self, tx: &mut PgTransaction<'_>, event: &Received) -> Result<(), Fault> {
        let Some(EventType::RetentionSet) = event.event_type() else { return Ok(()) };
        let changed: RetentionChanged = event.data()?;
        let (customer, project) =
            (event.customer(), ProjectId::from_field("ProjectId", &changed.project_id)?);
        if deletion::store::is_deleted(&mut **tx, customer, project).await? {
            return Ok(());
        }
        store::save(tx, customer, project, &changed).await
    }
}

/// Lists the retention times that differ from those of the catalog, and stores the latter if asked for, whatever was
/// stored: a restored catalog begins again with earlier revisions.
pub async fn compare_retentions(
    tx: &mut PgTransaction<'_>,
    known: &[KnownRetention],
    repairs: bool,
) -> Result<Vec<String>, Fault> {
    let differing = store::differing(tx, known).await?;
    if repairs {
        store::replace(tx, known).await?;
    }
    Ok(differing)
}

/// Lets the events that change retention times wait until the end of a transaction. So what is read from the catalog
/// afterwards is not older than what they have stored.
pub async fn lock_retentions(tx: &mut PgTransaction<'_>) -> Result<(), Fault> {
    sqlx::query("lock table retention in share row exclusive mode").execute(&mut **tx).await?;
    Ok(())
}

/// Starts the task that enforces retention. The program is ready once the next partitions exist.
pub(crate) fn spawn(runtime: &Runtime, database: &Database, artifacts: &Artifacts) {
    let (database, artifacts, stopping) = (database.clone(), artifacts.clone(), runtime.stopping());
    let gate = runtime.gate("partitions");
    runtime.spawn("retention", async move {
        let work = async {
            database.ready().await;
            while let Err(fault) = partition::create_next(database.pool()).await {
                tracing::warn!(%fault, "cannot create partitions");
                sleep(RETRY_DELAY).await;
            }
            gate.open();
            loop {
                if let Err(fault) = enforce_retention(database.pool(), &artifacts).await {
                    tracing::warn!(%fault, "cannot remove all expired results");
                }
                sleep(PERIOD).await;
            }
        };
        stopping.run_until_cancelled(work).await;
        Ok(())
    });
}

/// Creates the next partitions, and removes expired results, the sums of old days and old actions
/// of monitors. Only one replica removes at a time.
pub async fn enforce_retention(db: &PgPool, artifacts: &Artifacts) -> Result<(), Fault> {
    partition::create_next(db).await?;
    exclusively(db, "assay retention", remove_expired(db, artifacts)).await.map(|_| ())
}

async fn remove_expired(db: &PgPool, artifacts: &Artifacts) -> Result<(), Fault> {
    while store::expire(db).await? > 0 {}
    partition::drop_expired(db).await?;
    let pruned = prune(db, artifacts).await;
    insight::remove_old(db, &mut removal::throttle()).await?;
    monitor::remove_old(db, &mut removal::throttle()).await?;
    pruned
}

/// Removes the results of expired executions. A failed removal is retried in the next run and does
/// not delay others. If the store of files hangs, the others are retried, too.
async fn prune(db: &PgPool, artifacts: &Artifacts) -> Result<(), Fault> {
    let (mut throttle, mut after) = (removal::throttle(), None);
    loop {
        let executions = store::expired(db, after).await?;
        let Some(last) = executions.last() else { return Ok(()) };
        after = Some(last.id);
        for execution in executions {
            let (customer, id, begun) = (execution.customer_id, execution.id, Instant::now());
            if let Err(fault) = remove(db, artifacts, &mut throttle, customer, id).await {
                tracing::warn!(error = %fault, execution.id = %id,
                    "cannot remove expired results; they are removed later");
                if removal::has_hung(begun) {
                    return Err(fault);
                }
            }
        }
    }
}

async fn remove(
    db: &PgPool,
    artifacts: &Artifacts,
    throttle: &mut Throttle,
    customer: CustomerId,
    id: ExecutionId,
) -> Result<(), Fault> {
    artifacts.remove(customer, id).await?;
    removal::instances(db, throttle, customer, &store::reports(db, customer, id).await?).await?;
    testrail::store::remove_of_results(db, throttle, customer, id).await?;
    store::mark_pruned(db, customer, id).await
}
