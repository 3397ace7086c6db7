//! Takes schedules off the queue and leases them to an engine. Engines never wait for each other's
//! locks.

use std::collections::{BTreeSet, HashMap};

use assay_auth::Caller;
use assay_database::begin;
use assay_ledger::{
    execution, lease,
    schedule::{
        self, Schedule,
        queue::{QueueName, QueuePart},
    },
    settle, test_report,
    time_limits::TimeLimits,
};
use assay_proto::{
    CustomerId, ExecutionId, Fault, LeaseId, PoolId, TestReportId,
    execution::{Lease, LeaseInput},
};
use sqlx::{PgPool, PgTransaction};

use super::rules;
use crate::restriction;

/// Maximum number of parts of queues from which one request tries to take work: of those with exclusive
/// environments or pools, which may be in use, and of others, whose work may need another kind of address.
const MOST_TRIED: usize = 50;

/// Leases the first schedules of the queues that an engine serves, those with the most urgent work
/// first. Returns `None` without work for it.
pub(crate) async fn dequeue(
    db: &PgPool,
    settings: TimeLimits,
    caller: &Caller,
    input: &LeaseInput,
) -> Result<Option<Vec<Lease>>, Fault> {
    let customer = caller.customer;
    let (offered, projects) = (rules::offered(input), restriction::checked(&input.project_ids)?);
    let mut parts = schedule::store::parts(db, customer, &offered, &projects).await?;
    parts.retain(|part| part.queue.is_served_by(&offered));
    if parts.is_empty() {
        return Ok(None);
    }
    let mut tx = begin(db).await?;
    let schedules = take(&mut tx, customer, input, &parts).await?;
    if schedules.is_empty() {
        return Ok(None);
    }
    let leases =
        lease::store::insert(&mut tx, caller, input.engine(), settings, &schedules).await?;
    occupy(&mut tx, customer, &schedules, &leases).await?;
    let leases = lease::store::leases(&mut tx, customer, settings, &leases).await?;
    tx.commit().await?;
    Ok(Some(leases))
}

/// Takes schedules off the parts of queues, in this order. One that needs an exclusive environment or values of
/// pools is taken if they are free.
async fn take(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    input: &LeaseInput,
    parts: &[QueuePart],
) -> Result<Vec<Schedule>, Fault> {
    let (mut schedules, mut room) = (Vec::new(), input.max_schedules());
    let mut free = HashMap::new();
    let mut tried = [0; 2];
    for part in parts {
        let queue = &part.queue;
        let tried = &mut tried[usize::from(queue.is_limited())];
        if room == 0 {
            break;
        }
        if *tried == MOST_TRIED {
            continue;
        }
        *tried += 1;
        let most = match queue.exclusive() {
            Some(environment) => {
                i32::from(lease::occupation::is_free(tx, customer, environment).await?)
            }
            None => room,
        };
        let most = limit(tx, customer, queue, &mut free, most).await?;
        if most > 0 {
            let public = input.needs_public_ip;
            let taken = schedule::store::dequeue(tx, customer, part, public, most).await?;
            let count = i32::try_from(taken.len()).map_err(Fault::internal)?;
            room -= count;
            for pool in queue.pools() {
                free.entry(pool).and_modify(|free| *free -= i64::from(count));
            }
            schedules.extend(taken);
        }
    }
    Ok(schedules)
}

/// Returns how much work of a queue may be taken, at most `most`: as much as there are free values of its
/// pools. `free` has those of the pools that were locked so far.
async fn limit(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    queue: &QueueName,
    free: &mut HashMap<PoolId, i64>,
    most: i32,
) -> Result<i32, Fault> {
    let mut most = i64::from(most);
    for pool in queue.pools() {
        if most == 0 {
            break;
        }
        let of_pool = match free.get(&pool) {
            Some(of_pool) => *of_pool,
            None if lease::pooled::try_lock(tx, customer, pool).await? => {
                let of_pool = lease::pooled::free(tx, customer, pool).await?;
                free.insert(pool, of_pool);
                of_pool
            }
            // Another transaction is about to take values.
            None => 0,
        };
        most = most.min(of_pool);
    }
    i32::try_from(most).map_err(Fault::internal)
}

/// Occupies the exclusive environments of leased schedules, and takes values of their pools.
async fn occupy(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    schedules: &[Schedule],
    leases: &[LeaseId],
) -> Result<(), Fault> {
    for (schedule, lease) in schedules.iter().zip(leases) {
        let queue = QueueName::stored(schedule.target_group.clone());
        if let Some(environment) = queue.exclusive() {
            let project = schedule.project_id;
            lease::occupation::occupy(tx, customer, project, environment, *lease).await?;
        }
        for pool in queue.pools() {
            lease::pooled::take(tx, customer, schedule.project_id, pool, *lease).await?;
        }
    }
    Ok(())
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
