//! The task that derives the causes of stored failures again after rules have changed. One replica of the
//! service does this at a time, in a short transaction for each execution.

use std::time::{Duration, Instant};

use assay_database::{Database, begin, exclusively};
use assay_fair::rest;
use assay_ledger::failure::derivation;
use assay_proto::{CustomerId, Fault, ProjectId};
use assay_runtime::Runtime;
use assay_work::{Attempt, Patience, Queue, Work};
use sqlx::PgPool;
use uuid::Uuid;

/// Deriving the causes of a project. If it is dropped, stored failures keep the causes that they have.
pub(crate) const CAUSES: Work = Work {
    kind: "causes",
    queue: Queue::Unfinished {
        patience: Patience {
            first: Duration::from_secs(1),
            longest: Duration::from_mins(5),
            failures: 20,
        },
        pending: "exists (
            select from changed_causes c
            where c.customer_id = w.customer_id and c.project_id = w.id
        )",
        drop: "delete from changed_causes
               where (customer_id, project_id) in (select * from unnest($1::uuid[], $2::uuid[]))",
    },
};

/// Interval between rounds.
const INTERVAL: Duration = Duration::from_secs(1);

/// The key before all others.
const FIRST: (CustomerId, ProjectId) = (CustomerId(Uuid::nil()), ProjectId(Uuid::nil()));

/// Starts the task.
pub(crate) fn spawn(runtime: &Runtime, database: &Database) {
    let failure = "cannot read the projects whose causes have changed";
    let round = |db| async move { derive_changed(&db).await };
    database.every(runtime, "causes", INTERVAL, failure, round);
}

/// Derives the causes of all projects whose rules have changed, unless another replica is doing so. A failure
/// of one does not affect the others.
pub async fn derive_changed(db: &PgPool) -> Result<(), Fault> {
    if next(db, FIRST).await?.is_none() {
        return Ok(());
    }
    exclusively(db, "assay causes", derive_all(db)).await.map(|_| ())
}

async fn next(
    db: &PgPool,
    after: (CustomerId, ProjectId),
) -> Result<Option<(CustomerId, ProjectId)>, Fault> {
    derivation::next(db, after, &CAUSES.is_due("customer_id", "project_id")).await
}

async fn derive_all(db: &PgPool) -> Result<(), Fault> {
    let mut after = FIRST;
    while let Some((customer, project)) = next(db, after).await? {
        if let Some(attempt) = CAUSES.begin(db, customer, project.0).await?
            && let Err(fault) = derive(db, customer, project, &attempt).await
        {
            attempt.failed(db, &fault).await?;
        }
        after = (customer, project);
    }
    Ok(())
}

async fn derive(
    db: &PgPool,
    customer: CustomerId,
    project: ProjectId,
    attempt: &Attempt,
) -> Result<(), Fault> {
    loop {
        let began = Instant::now();
        let mut tx = begin(db).await?;
        let is_more = derivation::step(&mut tx, customer, project).await?;
        if !is_more {
            attempt.done(&mut *tx).await?;
        }
        tx.commit().await?;
        if !is_more {
            return Ok(());
        }
        attempt.progressed(db).await?;
        rest(began.elapsed()).await;
    }
}
