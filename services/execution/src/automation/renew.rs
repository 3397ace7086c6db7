//! Heartbeats of engines: they renew a lease, and wait until its work should stop.
//!
//! A heartbeat reads the database when it begins, when its execution is said to stop, and when its
//! wait is over. In between, it holds no connection and sends no statement, so that many engines are
//! cheap.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use assay_ledger::lease::{self, LeaseStatus, lost};
use assay_proto::{CustomerId, Fault, LeaseId, execution::LeaseState};
use sqlx::PgPool;

use crate::{limits::IngestLimits, queue::Queue};

/// Renews leases.
pub(super) struct Renewal<'a> {
    pub(super) db: &'a PgPool,
    pub(super) limits: &'a IngestLimits,
    pub(super) queue: &'a Queue,
    /// Time for which a renewed lease is held.
    pub(super) duration: Duration,
}

impl Renewal<'_> {
    /// Renews a lease, and returns whether its engine should continue: as soon as it should not, or
    /// once `wait` is over.
    pub(super) async fn renew_within(
        &self,
        customer: CustomerId,
        id: LeaseId,
        wait: Duration,
    ) -> Result<LeaseState, Fault> {
        if wait.is_zero() {
            return self.limits.read(customer, self.renew(customer, id)).await;
        }
        let schedule = lease::store::schedule_of(self.db, customer, id);
        let execution = self.limits.read(customer, schedule).await?.execution_id;
        let last = Mutex::new(None);
        let poll = || async {
            let state = self.limits.read(customer, self.renew(customer, id)).await?;
            let stops = !state.r#continue;
            *last.lock().unwrap_or_else(PoisonError::into_inner) = Some(state);
            Ok(stops.then_some(state))
        };
        let stopped = self.queue.wait_for_stop(customer, execution, wait, poll).await?;
        let last = last.into_inner().unwrap_or_else(PoisonError::into_inner);
        stopped.or(last).ok_or_else(|| Fault::internal("a heartbeat has not renewed its lease"))
    }

    async fn renew(&self, customer: CustomerId, id: LeaseId) -> Result<LeaseState, Fault> {
        let renewed = lease::store::renew(self.db, customer, id, self.duration).await?;
        let (expires_at, continues) = match renewed {
            Some(renewed) => renewed,
            None => match lease::store::status(self.db, customer, id).await? {
                (LeaseStatus::Canceled | LeaseStatus::Completed, expired_at) => (expired_at, false),
                _ => return Err(lost()),
            },
        };
        Ok(LeaseState { r#continue: continues, expires_at: Some(expires_at) })
    }
}
