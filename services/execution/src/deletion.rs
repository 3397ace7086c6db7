//! Deleted projects and customers: their executions are not found any more from the moment that the
//! event is applied, and are removed in the background.

mod purge;
pub(crate) mod store;

use assay_events::{Handler, Received};
use assay_proto::{Fault, ProjectId, events::RecordChanged};
use sqlx::PgTransaction;

pub use self::purge::purge_deleted;
pub(crate) use self::purge::spawn;

/// Remembers what other services have deleted.
pub struct Deletions;

impl Handler for Deletions {
    async fn handle(&self, tx: &mut PgTransaction<'_>, event: &Received) -> Result<(), Fault> {
        let changed: RecordChanged = event.data()?;
        let customer = event.customer();
        match (changed.source.as_str(), changed.action.as_str()) {
            ("Project", "Deleted") => {
                let project = ProjectId::from_field("SourceId", &changed.source_id)?;
                store::note(tx, customer, project).await
            }
            ("Customer", "Deleted") => store::note(tx, customer, store::ALL_PROJECTS).await,
            _ => Ok(()),
        }
    }
}
