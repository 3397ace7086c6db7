//! Leases on their way to an engine: with what the catalog keeps for them, or back to the queue.

use std::slice;

use assay_auth::Caller;
use assay_proto::{CustomerId, Fault, LeaseId, execution::CompleteLeaseInput};
use assay_runtime::begin;
use tonic::{Code, Status};

use super::{AutomationService, Opened, answer::Records, complete, store::State, take::Haul};

/// The comment on a report whose work no engine can get.
const UNREADABLE: &str = "Not run: its test plan, subject or environment was deleted, or cannot be \
    read. Save their secrets again, or ask the operator for the log of the catalog.";

/// Whether a call to the catalog may succeed later, or for another caller.
fn is_passing(status: &Status) -> bool {
    !matches!(
        status.code(),
        Code::Internal
            | Code::DataLoss
            | Code::Unknown
            | Code::NotFound
            | Code::InvalidArgument
            | Code::FailedPrecondition
            | Code::OutOfRange
            | Code::Unimplemented
    )
}

impl AutomationService {
    /// Reads the records that engines need for their leases. A lease whose records cannot be read
    /// does not keep engines from the rest: its report ends as an engine failure.
    pub(super) async fn hand_over(
        &self,
        caller: &Caller,
        haul: &mut Haul,
    ) -> Result<Records, Status> {
        let all = Records::read(&self.catalog, caller, &haul.leases, &haul.assignments).await;
        match all {
            Err(status) if !is_passing(&status) => {}
            done => return done,
        }
        let (mut records, mut readable) = (Records::default(), Vec::new());
        for lease in std::mem::take(&mut haul.leases) {
            let one = slice::from_ref(&lease);
            match Records::read(&self.catalog, caller, one, &haul.assignments).await {
                Ok(of_lease) => {
                    records.extend(of_lease);
                    readable.push(lease);
                }
                Err(status) if is_passing(&status) => {
                    tracing::warn!(%status, lease.id = %lease.id, "a lease is left to expire");
                }
                Err(status) => {
                    tracing::warn!(%status, lease.id = %lease.id, "work cannot be handed over");
                    self.give_up(caller.customer, lease.id).await?;
                }
            }
        }
        haul.leases = readable;
        Ok(records)
    }

    /// Ends a lease whose work no engine can get.
    async fn give_up(&self, customer: CustomerId, id: LeaseId) -> Result<(), Fault> {
        let mut tx = begin(&self.db).await?;
        let mut lease = Opened::lock(&mut tx, customer, id).await?;
        if lease.state == State::Held {
            let comment = Some(UNREADABLE.to_owned());
            let failed = CompleteLeaseInput { comment, engine_failure: true };
            complete(&mut tx, customer, &mut lease, &failed).await?;
            tx.commit().await?;
        }
        Ok(())
    }

    /// Gives back what cannot be handed over; what fails here, the reconciler does later.
    pub(super) async fn give_back(&self, customer: CustomerId, haul: &Haul) {
        for lease in &haul.leases {
            if let Err(fault) = self.release(customer, lease.id).await {
                tracing::warn!(error = %fault, lease.id = %lease.id, "a lease is left to expire");
            }
        }
    }
}
