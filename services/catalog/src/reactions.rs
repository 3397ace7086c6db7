//! Applies the events of other services. Events may arrive in any order, and more than once.

mod execution;
mod reports;

use assay_events::{EventType, Handler, Received, RecordKind};
use assay_proto::{CustomerId, Fault, ProjectId};
use assay_records::{Action, appliances};
use sqlx::PgTransaction;

pub(crate) use self::reports::{replace, show_status};
pub use self::{execution::execution_changed, reports::reports_changed};
use crate::{deletion, project};

/// Locks the project of an event. Returns false if it was deleted: then, the event is ignored.
async fn lock_project(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    project: ProjectId,
) -> Result<bool, Fault> {
    match project::store::lock_for_many(tx, customer, project).await {
        Err(Fault::NotFound(_)) => Ok(false),
        locked => locked.map(|()| true),
    }
}

/// Updates the projections of executions and test reports.
pub struct Reactions;

impl Handler for Reactions {
    async fn handle(&self, tx: &mut PgTransaction<'_>, event: &Received) -> Result<(), Fault> {
        let customer = event.customer();
        match event.event_type() {
            Some(EventType::Execution(_)) => execution_changed(tx, customer, &event.data()?).await,
            Some(EventType::Reports(_)) => reports_changed(tx, customer, &event.data()?).await,
            // The archive of executions does not change what the catalog shows.
            _ => Ok(()),
        }
    }
}

/// Deletes the projects of customers that the identity service has deleted, and stores the appliances of others.
pub(crate) struct Customers;

impl Handler for Customers {
    async fn handle(&self, tx: &mut PgTransaction<'_>, event: &Received) -> Result<(), Fault> {
        match event.event_type() {
            Some(EventType::Record(RecordKind::Customer, Action::Deleted)) => {
                deletion::delete_customer(tx, event.customer()).await
            }
            // The event of a change may arrive after that of the deletion.
            Some(EventType::AppliancesSet)
                if !deletion::is_deleted(tx, event.customer()).await? =>
            {
                appliances::save(tx, event.customer(), &event.data()?).await
            }
            _ => Ok(()),
        }
    }
}
