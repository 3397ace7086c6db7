//! Deleted projects and customers, whose executions are hidden as soon as the event is applied, and removed
//! in the background; and archived customers, whose share links grant no access.

mod purge;

use assay_events::{EventType, Handler, Received, RecordKind};
use assay_ledger::deletion::store;
use assay_proto::{Fault, ProjectId, events::RecordChanged};
use assay_records::Action;
use sqlx::PgTransaction;

pub use self::purge::purge_deleted;
pub(crate) use self::{purge::spawn, store::PURGE};

/// Applies the events about deleted projects, and about deleted and archived customers.
pub struct Deletions;

impl Handler for Deletions {
    async fn handle(&self, tx: &mut PgTransaction<'_>, event: &Received) -> Result<(), Fault> {
        match event.event_type() {
            Some(EventType::Record(RecordKind::Project, Action::Deleted)) => {
                let changed: RecordChanged = event.data()?;
                let project = ProjectId::from_field("SourceId", &changed.source_id)?;
                store::insert(tx, event.customer(), project).await
            }
            Some(EventType::Record(RecordKind::Customer, Action::Deleted)) => {
                store::insert(tx, event.customer(), store::ALL_PROJECTS).await
            }
            Some(EventType::Record(
                RecordKind::Customer,
                action @ (Action::Archived | Action::Unarchived),
            )) => {
                let is_archived = action == Action::Archived;
                store::set_state(tx, event.customer(), is_archived, event.time()).await
            }
            _ => Ok(()),
        }
    }
}
