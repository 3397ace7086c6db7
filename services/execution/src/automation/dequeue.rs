//! Takes schedules off the queue and leases them to an engine. Engines never wait for each other's
//! locks.

use assay_auth::Caller;
use assay_proto::{
    CustomerId, Fault,
    execution::{Lease, LeaseInput},
};
use assay_runtime::begin;
use sqlx::PgPool;

use crate::{
    execution,
    lease::{self, settings::LeaseSettings},
    schedule, settle, test_report,
};

/// Leases the first schedules of a queue. Returns `None` if the queue is empty.
pub(crate) async fn dequeue(
    db: &PgPool,
    settings: &LeaseSettings,
    caller: &Caller,
    input: &LeaseInput,
) -> Result<Option<Vec<Lease>>, Fault> {
    let customer = caller.customer;
    let mut tx = begin(db).await?;
    let schedules = schedule::store::dequeue(
        &mut tx,
        customer,
        input.target_group(),
        input.needs_public_ip,
        input.max_schedules(),
    )
    .await?;
    if schedules.is_empty() {
        return Ok(None);
    }
    let leases =
        lease::store::insert(&mut tx, caller, input.engine(), settings.lease(), &schedules).await?;
    let reports: Vec<_> = schedules.iter().map(|schedule| schedule.test_report_id).collect();
    test_report::store::mark_running(&mut tx, customer, &reports).await?;
    let leases = lease::store::leases(&mut tx, customer, &leases).await?;
    tx.commit().await?;
    Ok(Some(leases))
}

/// Marks the queued executions of leases as running. This needs a transaction of its own: others
/// that have locked an execution may wait for its schedules. If it fails, the first result marks
/// the execution.
pub(crate) async fn mark_running(
    db: &PgPool,
    customer: CustomerId,
    leases: &[Lease],
) -> Result<(), Fault> {
    let executions: Vec<_> = leases.iter().map(|lease| lease.execution_id.as_str()).collect();
    for (project, id) in execution::store::queued(db, customer, &executions).await? {
        let mut tx = begin(db).await?;
        let mut state = execution::store::lock(&mut tx, customer, project, id).await?;
        settle::mark_running(&mut tx, customer, &mut state).await?;
        tx.commit().await?;
    }
    Ok(())
}
