//! Removes the executions of deleted projects and customers: rows in short statements, files one
//! execution at a time. A failed removal is retried after all others.

use std::time::{Duration, Instant};

use assay_database::{Database, begin, exclusively};
use assay_fair::Throttle;
use assay_ledger::{
    deletion::{
        records,
        store::{self, Deleted, PURGE},
    },
    removal,
};
use assay_proto::{CustomerId, ExecutionId, Fault, TestReportId};
use assay_records::appliances;
use assay_runtime::Runtime;
use assay_work::Attempt;
use sqlx::PgPool;
use uuid::Uuid;

use crate::{artifact::Artifacts, engine, execution_time, reportportal, testrail};

/// Interval between purges.
const PERIOD: Duration = Duration::from_secs(5);

/// Starts the task that purges until the program stops.
pub(crate) fn spawn(runtime: &Runtime, database: &Database, artifacts: &Artifacts) {
    let artifacts = artifacts.clone();
    database.every(runtime, "purge", PERIOD, "cannot remove deleted executions", move |db| {
        let artifacts = artifacts.clone();
        async move { purge_deleted(&db, &artifacts).await }
    });
}

/// Removes the executions of deleted projects and customers, and abandoned files. Only one replica
/// purges at a time.
pub async fn purge_deleted(db: &PgPool, artifacts: &Artifacts) -> Result<(), Fault> {
    if let Err(fault) = artifacts.sweep().await {
        tracing::warn!(%fault, "cannot remove abandoned files; they are removed later");
    }
    if store::next(db, None).await?.is_none() {
        return Ok(());
    }
    exclusively(db, "assay purge", purge_all(db, artifacts)).await.map(|_| ())
}

async fn purge_all(db: &PgPool, artifacts: &Artifacts) -> Result<(), Fault> {
    let mut after = None;
    while let Some(deleted) = store::next(db, after).await? {
        after = Some(deleted);
        let work = deleted.work_id();
        let Some(attempt) = PURGE.begin(db, deleted.customer_id, work).await? else { continue };
        match purge(db, artifacts, &attempt, deleted).await {
            Ok(()) => {
                finish(db, deleted).await?;
                attempt.done(db).await?;
            }
            Err(fault) => attempt.failed(db, &fault).await?,
        }
    }
    Ok(())
}

/// Removes the executions of a deleted project or customer. Fails at the end if one could not be
/// removed, with its fault, and at once if the store of files hangs.
async fn purge(
    db: &PgPool,
    artifacts: &Artifacts,
    attempt: &Attempt,
    deleted: Deleted,
) -> Result<(), Fault> {
    let (mut throttle, mut failure) = (removal::throttle(), None);
    let mut after = ExecutionId(Uuid::nil());
    loop {
        let executions = store::executions(db, deleted, after).await?;
        let Some(last) = executions.last().copied() else { break };
        for id in executions {
            let begun = Instant::now();
            match remove(db, artifacts, &mut throttle, deleted.customer_id, id).await {
                Ok(()) => attempt.progressed(db).await?,
                Err(fault) => {
                    tracing::warn!(error = %fault, execution.id = %id,
                        "cannot remove a deleted execution; it is removed later");
                    if removal::has_hung(begun) {
                        return Err(fault);
                    }
                    failure = Some(fault);
                }
            }
        }
        after = last;
    }
    records::remove(db, &mut throttle, deleted.customer_id, deleted.project_id).await?;
    if deleted.project_id == store::ALL_PROJECTS {
        engine::remove_all(db, deleted.customer_id).await?;
        execution_time::store::remove_all(db, &mut throttle, deleted.customer_id).await?;
    }
    let project = Some(deleted.project_id).filter(|project| *project != store::ALL_PROJECTS);
    testrail::store::remove_of_deleted(db, &mut throttle, deleted.customer_id, project).await?;
    failure.map_or(Ok(()), Err)
}

/// Marks a deletion as finished, unless transactions that began before it may still be running. Removes the
/// settings of the project or customer that they, or late events, have added.
async fn finish(db: &PgPool, deleted: Deleted) -> Result<(), Fault> {
    let mut tx = begin(db).await?;
    if store::mark_purged(&mut *tx, deleted).await? {
        store::remove_settings(&mut tx, deleted.customer_id, deleted.project_id).await?;
        if deleted.project_id == store::ALL_PROJECTS {
            appliances::delete(&mut tx, deleted.customer_id).await?;
            store::remove_state(&mut *tx, deleted.customer_id).await?;
        }
    }
    Ok(tx.commit().await?)
}

/// Keeps the execution time of an execution, before anything that it follows from is removed.
async fn keep_time(db: &PgPool, customer: CustomerId, id: ExecutionId) -> Result<(), Fault> {
    let mut tx = begin(db).await?;
    execution_time::store::keep(&mut tx, customer, id).await?;
    Ok(tx.commit().await?)
}

/// Removes an execution with its reports, instances and artifacts.
async fn remove(
    db: &PgPool,
    artifacts: &Artifacts,
    throttle: &mut Throttle,
    customer: CustomerId,
    id: ExecutionId,
) -> Result<(), Fault> {
    if !store::is_unlocked(db, customer, id).await? {
        return Err(Fault::Busy(PERIOD));
    }
    keep_time(db, customer, id).await?;
    loop {
        let reports = store::reports(db, customer, id, throttle.batch_size()).await?;
        if reports.is_empty() {
            break;
        }
        removal::instances(db, throttle, customer, &reports).await?;
        let ids: Vec<TestReportId> = reports.into_iter().map(|(id, _)| id).collect();
        // The batch size may have shrunk since the reports were read.
        let most = usize::try_from(throttle.batch_size()).unwrap_or(usize::MAX);
        for part in ids.chunks(most) {
            for statement in store::REPORTS {
                removal::of_reports(db, throttle, statement, customer, part).await?;
            }
        }
    }
    artifacts.remove(customer, id).await?;
    reportportal::store::remove_of_execution(db, customer, id).await?;
    testrail::store::remove_of_execution(db, throttle, customer, id).await?;
    store::remove_execution(db, customer, id).await
}
