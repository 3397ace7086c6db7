//! Compares the stored executions and reports with the results that they are derived from, and
//! repairs them. They should never differ. Operators check this after restoring a backup, for
//! example.

mod compare;
mod customers;
mod derived;
mod examined;
mod projects;
mod published;
mod store;

use std::fmt::Display;

use assay_database::begin;
use assay_events::{ExecutionAction, ReportsAction, publish_all, wait_for_relay};
use assay_ledger::{execution, failure, settle::events::events, test_report};
use assay_proto::{CustomerId, ExecutionId, Fault};
use sqlx::PgPool;

use self::{compare::Difference, examined::Examined};
pub use self::{
    customers::{compare_customers, deleted_customers, lock_customers},
    projects::{compare_deletions, deleted_projects, deleted_records},
    published::{executed_cases, executions_of, reports_of},
};
use crate::{execution_time, incident, insight::days, quota};

const REBUILT: ExecutionAction = ExecutionAction::Rebuilt;

/// Maximum number of unpublished events before an execution is rebuilt, so that the events of users do not wait
/// behind those of all executions.
const UNPUBLISHED: i64 = 5000;

/// Calls `report` with each difference between the stored state and the results. Returns the number of
/// executions that were compared, and that of differences.
pub async fn verify(
    db: &PgPool,
    mut report: impl FnMut(&dyn Display),
) -> Result<(u64, u64), Fault> {
    let (mut executions, mut differences, mut after) = (0, 0, None);
    loop {
        let slice = store::executions(db, after).await?;
        for (customer, id) in &slice {
            let found = examine(db, *customer, *id).await.map_err(|fault| naming(*id, fault))?;
            let Some(found) = found else { continue };
            for difference in found {
                report(&difference);
                differences += 1;
            }
            executions += 1;
        }
        if slice.len() < store::SLICE {
            for difference in sums(db).await? {
                report(&difference);
                differences += 1;
            }
            return Ok((executions, differences));
        }
        after = slice.last().copied();
    }
}

/// Lists what is counted over several executions, or for a customer, and differs from what is stored of them.
async fn sums(db: &PgPool) -> Result<Vec<Difference>, Fault> {
    let mut sums = store::counter_differences(db).await?;
    for statement in [
        days::differences(),
        execution_time::store::differences(),
        incident::drift::differences(),
        quota::drift::differences(),
    ] {
        sums.extend(store::differences(db, &statement).await?);
    }
    Ok(sums)
}

/// Returns the differences of an execution; `None` if it was deleted meanwhile.
async fn examine(
    db: &PgPool,
    customer: CustomerId,
    id: ExecutionId,
) -> Result<Option<Vec<Difference>>, Fault> {
    let mut tx = begin(db).await?;
    sqlx::query("set transaction isolation level repeatable read, read only")
        .execute(&mut *tx)
        .await?;
    let stored = match execution::store::find(&mut *tx, customer, None, id).await {
        Err(Fault::NotFound(_)) => return Ok(None),
        stored => stored?,
    };
    Ok(Some(Examined::of(&mut tx, customer, stored).await?.differences()))
}

/// Returns the fault of an execution with its id, so that an operator finds what cannot be read.
fn naming(id: ExecutionId, fault: Fault) -> Fault {
    match fault {
        Fault::Internal(cause) => Fault::internal(format!("execution {id}: {cause}")),
        fault => fault,
    }
}

/// Repairs the stored state from the results, and publishes the state of every execution again.
/// Locks each execution in a transaction of its own, like results do, and waits while many events are
/// unpublished. Returns the number of changed rows.
pub async fn rebuild(db: &PgPool) -> Result<u64, Fault> {
    let (mut repaired, mut after) = (0, None);
    loop {
        let slice = store::executions(db, after).await?;
        for (customer, id) in &slice {
            wait_for_relay(db, UNPUBLISHED).await?;
            let done = rebuild_execution(db, *customer, *id).await;
            repaired += done.map_err(|fault| naming(*id, fault))?;
        }
        if slice.len() < store::SLICE {
            return Ok(repaired
                + store::repair_counters(db).await?
                + store::repair_days(db).await?
                + store::repair_execution_times(db).await?
                + incident::drift::repair(db).await?
                + quota::drift::repair(db).await?);
        }
        after = slice.last().copied();
    }
}

async fn rebuild_execution(
    db: &PgPool,
    customer: CustomerId,
    id: ExecutionId,
) -> Result<u64, Fault> {
    let mut tx = begin(db).await?;
    let stored = match execution::store::lock(&mut tx, customer, None, id).await {
        // Deleted meanwhile.
        Err(Fault::NotFound(_)) => return Ok(0),
        stored => stored?,
    };
    let mut repaired = 0;
    if !execution::store::has_expired(&mut *tx, customer, id).await? {
        let failures = failure::derive::repair(&mut tx, customer, id).await?.len();
        repaired += u64::try_from(failures).unwrap_or(u64::MAX);
    }
    let examined = Examined::of(&mut tx, customer, stored).await?;
    let (state, changed) = examined.repair(&mut tx).await?;
    repaired += changed;
    let ended = test_report::store::ended(&mut tx, customer, id).await?;
    let actions = (REBUILT, ReportsAction::Rebuilt);
    let events = events(customer, &state, &state.event(REBUILT), actions, &ended);
    publish_all(&mut tx, events).await?;
    tx.commit().await?;
    Ok(repaired)
}
