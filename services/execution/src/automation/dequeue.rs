//! Takes schedules off the queue and leases them to an engine. Engines never wait for each other's
//! locks.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use assay_auth::Caller;
use assay_database::begin;
use assay_ledger::{
    execution, lease,
    schedule::{
        self, Schedule,
        queue::{QueueName, QueuePart, Rank},
    },
    settle, test_report,
    time_limits::TimeLimits,
};
use assay_proto::{
    CustomerId, EnvironmentId, ExecutionId, Fault, LeaseId, PoolId, TestReportId,
    execution::{Lease, LeaseInput},
};
use sqlx::{PgPool, PgTransaction};

use super::rules;
use crate::restriction;

/// Maximum number of times that one request tries in vain to take work off a part of a queue: of those with exclusive
/// environments or pools, which others may be about to use, and of others, whose work may need another kind of address.
const MOST_TRIED: usize = 50;

/// Leases the first schedules among those of all queues that an engine serves, the most urgent first. Returns `None` without work for it.
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
    leave_out_used(db, customer, &mut parts).await?;
    if parts.is_empty() {
        return Ok(None);
    }
    let mut tx = begin(db).await?;
    let schedules = take(&mut tx, customer, input, parts).await?;
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

/// Leaves out the parts of queues that need an environment or a pool in use. There may be more of them than one request
/// tries, in front of those whose work can begin.
async fn leave_out_used(
    db: &PgPool,
    customer: CustomerId,
    parts: &mut Vec<QueuePart>,
) -> Result<(), Fault> {
    let environments: Vec<_> = parts.iter().filter_map(|part| part.queue.exclusive()).collect();
    if !environments.is_empty() {
        let occupied = lease::occupation::occupied(db, customer, &environments).await?;
        let is_free = |environment: EnvironmentId| !occupied.contains(&environment);
        parts.retain(|part| part.queue.exclusive().is_none_or(is_free));
    }
    let pools: Vec<_> = parts.iter().flat_map(|part| part.queue.pools()).collect();
    if !pools.is_empty() {
        let used_up = lease::pooled::used_up(db, customer, &pools).await?;
        parts.retain(|part| !part.queue.pools().iter().any(|pool| used_up.contains(pool)));
    }
    Ok(())
}

/// Takes schedules off the parts of queues, in the order of all of them. One that needs an exclusive environment or
/// values of pools is taken if they are free.
async fn take(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    input: &LeaseInput,
    parts: Vec<QueuePart>,
) -> Result<Vec<Schedule>, Fault> {
    let public = input.needs_public_ip;
    let (mut schedules, mut room) = (Vec::new(), input.max_schedules());
    let (mut free, mut vain) = (Free::default(), [0; 2]);
    let mut waiting: BTreeMap<Rank, QueuePart> =
        parts.into_iter().map(|part| (part.first, part)).collect();
    while room > 0
        && let Some((_, part)) = waiting.pop_first()
    {
        let vain = &mut vain[usize::from(part.queue.is_limited())];
        if *vain == MOST_TRIED {
            continue;
        }
        // The work that comes before that of the other parts, and the first that does not.
        let (ahead, ranks) = match waiting.first_key_value() {
            None => (room, Vec::new()),
            Some((next, _)) => {
                let most = room + 1;
                let ranks = schedule::store::ranks(tx, customer, &part, public, most).await?;
                let ahead = ranks.partition_point(|rank| rank < next);
                (i32::try_from(ahead).map_err(Fault::internal)?.min(room), ranks)
            }
        };
        let most = free.limit(tx, customer, &part.queue, ahead).await?;
        let taken = if most > 0 {
            schedule::store::dequeue(tx, customer, &part, public, most).await?
        } else {
            Vec::new()
        };
        let count = i32::try_from(taken.len()).map_err(Fault::internal)?;
        free.take(&part.queue, count);
        room -= count;
        *vain += usize::from(count == 0);
        // Work is left behind that of another part, unless something that it needs is in use.
        let is_left = count == ahead || most > 0 && count == most;
        if let Some(rank) = ranks.get(taken.len()).filter(|_| is_left) {
            waiting.insert(*rank, part);
        }
        schedules.extend(taken);
    }
    Ok(schedules)
}

/// Environments and values of pools that are free for a request: it does not occupy the former, and has locked the
/// latter.
#[derive(Default)]
struct Free {
    occupied: HashSet<EnvironmentId>,
    pools: HashMap<PoolId, i64>,
}

impl Free {
    /// Returns how much work of a queue may be taken, at most `most`: as much as there are free values of its
    /// pools, and one in an exclusive environment.
    async fn limit(
        &mut self,
        tx: &mut PgTransaction<'_>,
        customer: CustomerId,
        queue: &QueueName,
        most: i32,
    ) -> Result<i32, Fault> {
        let mut most = i64::from(most);
        if let Some(environment) = queue.exclusive().filter(|_| most > 0) {
            let is_free = !self.occupied.contains(&environment)
                && lease::occupation::is_free(tx, customer, environment).await?;
            most = i64::from(is_free);
        }
        for pool in queue.pools() {
            if most == 0 {
                break;
            }
            let of_pool = match self.pools.get(&pool) {
                Some(of_pool) => *of_pool,
                None if lease::pooled::try_lock(tx, customer, pool).await? => {
                    let of_pool = lease::pooled::free(tx, customer, pool).await?;
                    self.pools.insert(pool, of_pool);
                    of_pool
                }
                // Another transaction is about to take values.
                None => 0,
            };
            most = most.min(of_pool);
        }
        i32::try_from(most).map_err(Fault::internal)
    }

    /// Notes that this number of schedules of a queue was taken.
    fn take(&mut self, queue: &QueueName, count: i32) {
        for pool in queue.pools() {
            self.pools.entry(pool).and_modify(|free| *free -= i64::from(count));
        }
        self.occupied.extend(queue.exclusive().filter(|_| count > 0));
    }
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
