//! Deleted projects and customers, whose executions are hidden as soon as the event is applied, and removed
//! in the background; deleted test cases and test sets; and archived customers, whose share links grant no
//! access.

pub(crate) mod lost;
mod purge;

use assay_events::{EventType, Handler, Received, RecordKind};
use assay_ledger::deletion::{records, store};
use assay_proto::{CustomerId, Fault, ProjectId, events::RecordChanged};
use assay_records::{Action, appliances};
use sqlx::PgTransaction;

pub use self::purge::purge_deleted;
pub(crate) use self::{purge::spawn, store::PURGE};

/// Applies the events about deleted projects, test cases and test sets, about deleted and archived
/// customers, and about their appliances.
pub struct Deletions;

async fn is_deleted(tx: &mut PgTransaction<'_>, customer: CustomerId) -> Result<bool, Fault> {
    store::is_deleted(&mut **tx, customer, store::ALL_PROJECTS).await
}

impl Handler for Deletions {
    async fn handle(&self, tx: &mut PgTransaction<'_>, event: &Received) -> Result<(), Fault> {
        match event.event_type() {
            Some(EventType::Record(RecordKind::Project, Action::Deleted)) => {
                let changed: RecordChanged = event.data()?;
                let project = ProjectId::from_field("SourceId", &changed.source_id)?;
                store::insert(tx, event.customer(), project).await
            }
            Some(EventType::Record(RecordKind::Customer, Action::Deleted)) => {
                appliances::delete(tx, event.customer()).await?;
                store::insert(tx, event.customer(), store::ALL_PROJECTS).await
            }
            // The event of a change may arrive after that of the deletion.
            Some(
                EventType::AppliancesSet
                | EventType::Record(RecordKind::Customer, Action::Archived | Action::Unarchived),
            ) if is_deleted(tx, event.customer()).await? => Ok(()),
            Some(EventType::AppliancesSet) => {
                appliances::save(tx, event.customer(), &event.data()?).await
            }
            Some(EventType::Record(
                RecordKind::Customer,
                action @ (Action::Archived | Action::Unarchived),
            )) => {
                let is_archived = action == Action::Archived;
                store::set_state(tx, event.customer(), is_archived, event.time()).await
            }
            _ => match records::deleted(event)? {
                Some(record) => records::insert(tx, event.customer(), &[record]).await,
                None => Ok(()),
            },
        }
    }

    async fn handle_all(
        &self,
        tx: &mut PgTransaction<'_>,
        events: &[&Received],
    ) -> Result<bool, Fault> {
        let [first, ..] = events else { return Ok(true) };
        if events.iter().any(|event| is_of_owner(event)) {
            return Ok(false);
        }
        let deleted = |event: &&Received| records::deleted(event).transpose();
        let deleted = events.iter().filter_map(deleted).collect::<Result<Vec<_>, _>>()?;
        records::insert(tx, first.customer(), &deleted).await?;
        Ok(true)
    }
}

/// Whether an event is about a project or a customer.
fn is_of_owner(event: &Received) -> bool {
    let kind = event.event_type();
    matches!(
        kind,
        Some(
            EventType::Record(RecordKind::Project | RecordKind::Customer, _)
                | EventType::AppliancesSet
        )
    )
}
