//! How engines get their work. Whoever takes schedules off the queue waits for no lock, so that
//! engines never wait for each other.

use std::collections::{BTreeSet, HashMap};

use assay_auth::Caller;
use assay_proto::{ExecutionId, Fault, LeaseId, Timestamp};
use assay_runtime::begin;
use sqlx::PgPool;

use super::{
    Settings,
    rules::Wanted,
    store::{self, Assignment, Work},
};
use crate::{
    execution::{self, mark_running},
    schedule::{self, store::Taken},
    test_report,
};

/// A schedule that was leased, yet without what the catalog knows.
#[derive(Debug)]
pub(crate) struct Leased {
    pub(crate) id: LeaseId,
    pub(crate) expires_at: Timestamp,
    pub(crate) schedule: Taken,
    pub(crate) work: Work,
}

/// What an engine got, and the executions that it is of.
#[derive(Debug)]
pub(crate) struct Haul {
    pub(crate) leases: Vec<Leased>,
    pub(crate) assignments: HashMap<ExecutionId, Assignment>,
}

/// Leases what is in the queue; nothing if that is empty.
pub(crate) async fn take(
    db: &PgPool,
    settings: &Settings,
    caller: &Caller,
    wanted: &Wanted,
) -> Result<Option<Haul>, Fault> {
    let customer = caller.customer;
    let mut tx = begin(db).await?;
    let taken = schedule::store::take(
        &mut tx,
        customer,
        &wanted.target_group,
        wanted.needs_public_ip,
        wanted.max_schedules,
    )
    .await?;
    if taken.is_empty() {
        return Ok(None);
    }
    let (ids, expires_at) =
        store::grant(&mut tx, caller, &wanted.engine, settings.lease(), &taken).await?;
    let reports: Vec<_> = taken.iter().map(|schedule| schedule.test_report_id).collect();
    test_report::store::take_up(&mut tx, customer, &reports).await?;
    let work = store::work(&mut tx, customer, &reports).await?;
    let executions: BTreeSet<_> = taken.iter().map(|schedule| schedule.execution_id).collect();
    let executions: Vec<_> = executions.into_iter().collect();
    let assignments = store::assignments(&mut tx, customer, &executions).await?;
    tx.commit().await?;

    let mut work: HashMap<_, _> = work.into_iter().map(|work| (work.id, work)).collect();
    let leases = taken.into_iter().zip(ids).filter_map(|(schedule, id)| {
        let work = work.remove(&schedule.test_report_id)?;
        Some(Leased { id, expires_at, schedule, work })
    });
    let leases = leases.collect();
    let assignments = assignments.into_iter().map(|of| (of.id, of)).collect();
    Ok(Some(Haul { leases, assignments }))
}

/// Shows that the executions have begun that were only queued before. Not in the transaction that
/// takes schedules, since others may have locked an execution that wait for these. If it fails, the
/// first result shows it.
pub(crate) async fn show_begun(db: &PgPool, caller: &Caller, haul: &Haul) -> Result<(), Fault> {
    let customer = caller.customer;
    let mut begun = BTreeSet::new();
    for lease in &haul.leases {
        let Taken { execution_id: id, project_id: project, .. } = lease.schedule;
        let is_queued = haul.assignments.get(&id).is_some_and(|execution| execution.is_queued);
        if is_queued && begun.insert(id) {
            let mut tx = begin(db).await?;
            let mut run = execution::store::lock(&mut tx, customer, project, id).await?;
            mark_running(&mut tx, customer, &mut run).await?;
            tx.commit().await?;
        }
    }
    Ok(())
}
