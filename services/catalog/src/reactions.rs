//! Applies the events of other services. Events may arrive in any order, and more than once.

mod execution;
mod reports;

use assay_events::{EventType, Handler, Received, RecordKind};
use assay_proto::Fault;
use assay_records::Action;
use sqlx::PgTransaction;

pub use self::{execution::execution_changed, reports::reports_changed};
use crate::deletion;

/// Updates the projections of executions and test reports.
pub struct Reactions;

impl Handler for Reactions {
    async fn handle(
        &self,
        tx: &mut PgTransaction<'_>,
        event_type: EventType,
        event: &Received,
    ) -> Result<(), Fault> {
        match event_type {
            EventType::Execution(_) => {
                execution_changed(tx, event.customer(), &event.data()?).await
            }
            EventType::Reports(_) => reports_changed(tx, event.customer(), &event.data()?).await,
            // The archive of executions does not change what the catalog shows.
            EventType::Record(..) | EventType::SecretsSeen | EventType::RetentionSet => Ok(()),
        }
    }
}

/// Deletes the projects of customers that the identity service has deleted.
pub(crate) struct Customers;

impl Handler for Customers {
    async fn handle(
        &self,
        tx: &mut PgTransaction<'_>,
        event_type: EventType,
        event: &Received,
    ) -> Result<(), Fault> {
        match event_type {
            EventType::Record(RecordKind::Customer, Action::Deleted) => {
                deletion::delete_customer(tx, event.customer()).await
            }
            EventType::Record(..)
            | EventType::SecretsSeen
            | EventType::RetentionSet
            | EventType::Execution(_)
            | EventType::Reports(_) => Ok(()),
        }
    }
}
