//! Heartbeats of engines: they renew a lease, and wait until its work should stop.
//!
//! A heartbeat reads the database when it begins, when its execution is said to stop, and when its
//! wait is over. In between, it holds no connection and sends no statement, so that many engines are
//! cheap.

use std::{sync::Mutex, time::Duration};

use assay_ledger::lease::{self, LeaseStatus, lost};
use assay_proto::{CustomerId, Fault, LeaseId, execution::LeaseState};

use super::AutomationService;

/// Renews a lease, and returns whether its engine should continue: as soon as it should not, or once
/// `wait` is over.
pub(super) async fn renew(
    service: &AutomationService,
    customer: CustomerId,
    id: LeaseId,
    wait: Duration,
) -> Result<LeaseState, Fault> {
    let now = || service.limits.read(customer, renew_now(service, customer, id));
    if wait.is_zero() {
        return now().await;
    }
    let execution = lease::store::schedule_of(&service.db, customer, id);
    let execution = service.limits.read(customer, execution).await?.execution_id;
    let last = Mutex::new(None);
    let poll = async || {
        let state = now().await?;
        let stops = !state.r#continue;
        *last.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(state.clone());
        Ok(stops.then_some(state))
    };
    let stopped = service.queue.wait_for_stop(customer, execution, wait, poll).await?;
    let last = last.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    stopped.or(last).ok_or_else(|| Fault::internal("a heartbeat has not renewed its lease"))
}

async fn renew_now(
    service: &AutomationService,
    customer: CustomerId,
    id: LeaseId,
) -> Result<LeaseState, Fault> {
    let (db, duration) = (&service.db, service.settings.lease());
    let (expires_at, continues) = match lease::store::renew(db, customer, id, duration).await? {
        Some(renewed) => renewed,
        None => match lease::store::status(db, customer, id).await? {
            (LeaseStatus::Canceled | LeaseStatus::Completed, expired_at) => (expired_at, false),
            _ => return Err(lost()),
        },
    };
    Ok(LeaseState { r#continue: continues, expires_at: Some(expires_at) })
}
