//! Leases: the right of an engine to work on a schedule.
//!
//! Results of a lease are added under the lock of its execution, after a check that the lease is
//! not lost, and a lease is lost under the same lock. So if two engines work on the same schedule,
//! only the results of the later one count.
//!
//! A lease is held until the reconciler ends it, also when its time has passed: after an outage, its engine may be
//! about to renew it.

pub mod occupation;
pub mod pooled;
pub mod records;
pub mod silence;
pub mod store;
pub mod uptime;

use assay_proto::Fault;

/// Whether a lease is held, and if not, how it ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LeaseStatus {
    Held,
    /// Its engine completed the work.
    Completed,
    /// Its engine returned the work to the queue.
    Released,
    /// Its execution ended.
    Canceled,
    /// It was not renewed in time.
    Lost,
}

/// Returns the conflict of an engine that uses a lost lease.
pub fn lost() -> Fault {
    let reason = "the lease was not renewed in time; its work has returned to the queue";
    Fault::Conflict { code: "lease_lost", reason: reason.to_owned() }
}
