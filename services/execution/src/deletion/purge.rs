//! Removes what is left of deleted projects and customers: rows in short statements, files one
//! execution at a time. What cannot be removed now is tried again later, after everything else.

use std::time::Duration;

use assay_proto::{CustomerId, ExecutionId, Fault, TestReportId};
use assay_runtime::{AdvisoryLock, Database, Throttle, Runtime};
use sqlx::PgPool;
use tokio::time::sleep;
use uuid::Uuid;

use super::store::{self, Deleted};
use crate::{artifact::Artifacts, removal};

/// How often it looks for what was deleted.
const PERIOD: Duration = Duration::from_secs(5);

/// Removes things until the program stops.
pub(crate) fn spawn(runtime: &Runtime, database: &Database, artifacts: &Artifacts) {
    let (database, artifacts, stopping) = (database.clone(), artifacts.clone(), runtime.stopping());
    runtime.spawn("purge", async move {
        let work = async {
            database.ready().await;
            loop {
                if let Err(fault) = purge_deleted(database.pool(), &artifacts).await {
                    tracing::warn!(error = %fault, "deleted executions were not removed");
                }
                sleep(PERIOD).await;
            }
        };
        stopping.run_until_cancelled(work).await;
        Ok(())
    });
}

/// Removes now what is left of deleted projects and customers, and files that were left behind. Of
/// several replicas one does it.
pub async fn purge_deleted(db: &PgPool, artifacts: &Artifacts) -> Result<(), Fault> {
    artifacts.sweep().await?;
    if store::next(db, None).await?.is_none() {
        return Ok(());
    }
    let Some(mut alone) = AdvisoryLock::try_acquire(db, "assay purge").await? else { return Ok(()) };
    let mut after = None;
    while let Some(deleted) = store::next(db, after).await? {
        if purge(db, artifacts, &mut alone, deleted).await? {
            store::note_purged(db, deleted).await?;
        }
        after = Some(deleted);
    }
    alone.end().await
}

/// Removes the executions of what was deleted; returns whether none is left.
async fn purge(
    db: &PgPool,
    artifacts: &Artifacts,
    alone: &mut AdvisoryLock,
    deleted: Deleted,
) -> Result<bool, Fault> {
    let (mut pace, mut is_empty) = (removal::pace(), true);
    let mut after = ExecutionId(Uuid::nil());
    loop {
        let executions = store::executions(db, deleted, after).await?;
        let Some(last) = executions.last().copied() else { return Ok(is_empty) };
        for id in executions {
            alone.keep().await?;
            if let Err(fault) = remove(db, artifacts, &mut pace, deleted.customer_id, id).await {
                tracing::warn!(error = %fault, execution.id = %id,
                    "a deleted execution is removed later");
                is_empty = false;
            }
        }
        after = last;
    }
}

/// Removes an execution with all that belongs to it.
async fn remove(
    db: &PgPool,
    artifacts: &Artifacts,
    pace: &mut Throttle,
    customer: CustomerId,
    id: ExecutionId,
) -> Result<(), Fault> {
    if !store::is_at_rest(db, customer, id).await? {
        return Err(Fault::Busy(PERIOD));
    }
    loop {
        let reports = store::reports(db, customer, id, pace.rows()).await?;
        if reports.is_empty() {
            break;
        }
        removal::instances(db, pace, customer, &reports).await?;
        let ids: Vec<TestReportId> = reports.into_iter().map(|(id, _)| id).collect();
        // As fast as it is by now, which may be slower than when they were read.
        let most = usize::try_from(pace.rows()).unwrap_or(usize::MAX);
        for part in ids.chunks(most) {
            for statement in store::REPORTS {
                removal::of_reports(db, pace, statement, customer, part).await?;
            }
        }
    }
    artifacts.remove(customer, id).await?;
    store::remove_execution(db, customer, id).await
}
