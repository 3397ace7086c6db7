//! What the catalog makes of the events of other services. The events may come in any order, and
//! more than once.

mod execution;
mod reports;

use assay_events::{Handler, Received};
use assay_proto::{CustomerId, Fault, ProjectId};
use sqlx::PgTransaction;

pub use self::{execution::execution_changed, reports::reports_changed};
use crate::{deletion, project};

/// Shows executions and their reports, from the events of the execution service.
pub struct Reactions;

impl Handler for Reactions {
    async fn handle(&self, tx: &mut PgTransaction<'_>, event: &Received) -> Result<(), Fault> {
        match event.action() {
            "rebuilt" if event.noun() == "test_report" => {
                reports_changed(tx, event.customer(), &event.data()?).await
            }
            "rebuilt" => execution_changed(tx, event.customer(), &event.data()?).await,
            "requested" | "progressed" | "completed" | "canceled" => {
                execution_changed(tx, event.customer(), &event.data()?).await
            }
            "finished" | "reviewed" => reports_changed(tx, event.customer(), &event.data()?).await,
            _ => Ok(()),
        }
    }
}

/// Keeps others from deleting the project, and what is in it, meanwhile. Returns whether there is
/// such a project: what happens in a deleted one is nobody's.
async fn hold(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    project: ProjectId,
) -> Result<bool, Fault> {
    match project::store::hold(tx, customer, project).await {
        Ok(()) => Ok(true),
        Err(Fault::NotFound(_)) => Ok(false),
        Err(fault) => Err(fault),
    }
}

/// Deletes all that belongs to a customer that the identity service has deleted.
pub(crate) struct Customers;

impl Handler for Customers {
    async fn handle(&self, tx: &mut PgTransaction<'_>, event: &Received) -> Result<(), Fault> {
        match event.action() {
            "deleted" => deletion::of_customer(tx, event.customer()).await,
            _ => Ok(()),
        }
    }
}
