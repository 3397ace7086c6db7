//! Retention: what projects do not keep any more, and the partitions that the rest is in.
//!
//! An execution whose time has come expires: from then on its results and artifacts are nobody's.
//! They are removed in the background, a whole partition at once where all in it has expired, else
//! in small batches. The execution and its reports stay.

mod partition;
mod store;

use std::time::Duration;

use assay_events::{EventType, Handler, Received};
use assay_proto::{CustomerId, ExecutionId, Fault, ProjectId, events::RetentionChanged};
use assay_runtime::{AdvisoryLock, Database, Throttle, Runtime};
use sqlx::{PgPool, PgTransaction};
use tokio::time::sleep;

use crate::{artifact::Artifacts, deletion, removal};

/// How often there is something to do at most.
const PERIOD: Duration = Duration::from_mins(10);

/// How soon it is tried again to reach the database.
const PAUSE: Duration = Duration::from_secs(3);

/// Remembers how long projects keep their results.
pub(crate) struct Reactions;

impl Handler for Reactions {
    async fn handle(
        &self,
        tx: &mut PgTransaction<'_>,
        event_type: EventType,
        event: &Received,
    ) -> Result<(), Fault> {
        match event_type {
            EventType::RetentionSet => set_retention(tx, event).await,
            EventType::Record(..)
            | EventType::SecretsSeen
            | EventType::Execution(_)
            | EventType::Reports(_) => Ok(()),
        }
    }
}

async fn set_retention(tx: &mut PgTransaction<'_>, event: &Received) -> Result<(), Fault> {
    let changed: RetentionChanged = event.data()?;
    let (customer, project) =
        (event.customer(), ProjectId::from_field("ProjectId", &changed.project_id)?);
    if deletion::store::is_deleted(&mut **tx, customer, project).await? {
        return Ok(());
    }
    store::remember(tx, customer, project, &changed).await
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
    let Some(mut alone) = AdvisoryLock::try_acquire(db, "assay retention").await? else { return Ok(()) };
    while store::expire(db).await? > 0 {}
    partition::drop_expired(db).await?;
    prune(db, artifacts, &mut alone).await?;
    alone.end().await
}

/// Removes what is left of executions that have expired. One that cannot be removed now is tried
/// again the next time; others do not wait for it.
async fn prune(db: &PgPool, artifacts: &Artifacts, alone: &mut AdvisoryLock) -> Result<(), Fault> {
    let (mut pace, mut after) = (removal::pace(), None);
    loop {
        let executions = store::expired(db, after).await?;
        let Some(last) = executions.last() else { return Ok(()) };
        after = Some(last.id);
        for execution in executions {
            alone.keep().await?;
            let (customer, id) = (execution.customer_id, execution.id);
            if let Err(fault) = remove(db, artifacts, &mut pace, customer, id).await {
                tracing::warn!(error = %fault, execution.id = %id,
                    "results that have expired are removed later");
            }
        }
    }
}

async fn remove(
    db: &PgPool,
    artifacts: &Artifacts,
    pace: &mut Throttle,
    customer: CustomerId,
    id: ExecutionId,
) -> Result<(), Fault> {
    artifacts.remove(customer, id).await?;
    removal::instances(db, pace, customer, &store::reports(db, customer, id).await?).await?;
    store::note_pruned(db, customer, id).await
}
