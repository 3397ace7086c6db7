//! Takes schedules off the queue and leases them to an engine. Engines never wait for each other's
//! locks.

use std::collections::BTreeSet;

use assay_auth::Caller;
use assay_database::begin;
use assay_ledger::{execution, lease, schedule, settle, test_report, time_limits::TimeLimits};
use assay_proto::{
    CustomerId, ExecutionId, Fault, TestReportId,
    execution::{Lease, LeaseInput},
};
use sqlx::PgPool;

/// Leases the first schedules of a queue. Returns `None` if the queue is empty.
pub(crate) async fn dequeue(
    db: &PgPool,
    settings: TimeLimits,
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
        lease::store::insert(&mut tx, caller, input.engine(), settings, &schedules).await?;
    let leases = lease::store::leases(&mut tx, customer, settings, &leases).await?;
    tx.commit().await?;
    Ok(Some(leases))
}

/// Marks the reports of leases and their executions as running. This needs transactions of its own:
/// others that have locked an execution may wait for its schedules. If it fails, the first result
/// marks them.
pub(crate) async fn mark_running(
    db: &PgPool,
    customer: CustomerId,
    leases: &[Lease],
) -> Result<(), Fault> {
    let executions: BTreeSet<_> = leases.iter().map(|lease| &lease.execution_id).collect();
    for id in executions {
        let id = ExecutionId::from_record(id)?;
        let reports = leases.iter().filter(|lease| lease.execution_id == id.to_string());
        let reports = reports.map(|lease| TestReportId::from_record(&lease.test_report_id));
        let reports: Vec<_> = reports.collect::<Result<_, _>>()?;
        let mut tx = begin(db).await?;
        let mut state = execution::store::lock(&mut tx, customer, None, id).await?;
        test_report::store::mark_running(&mut tx, customer, &reports).await?;
        settle::mark_running(&mut tx, customer, &mut state).await?;
        tx.commit().await?;
    }
    Ok(())
}
