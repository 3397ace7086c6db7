//! What the catalog shows of executions and their reports, from the events of the execution
//! service. The events may come in any order, and more than once.

mod execution;
mod reports;

use assay_events::{Handler, Received};
use assay_proto::{CustomerId, Fault, ProjectId};
use sqlx::PgTransaction;

pub use self::{execution::execution_changed, reports::reports_changed};

/// Applies the events of the execution service.
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

/// Keeps others from deleting the project, and what is in it, meanwhile; it may have been deleted
/// before.
async fn hold(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    project: ProjectId,
) -> Result<(), Fault> {
    sqlx::query("select from project where customer_id = $1 and id = $2 for key share")
        .bind(customer)
        .bind(project)
        .execute(&mut **tx)
        .await?;
    Ok(())
}
