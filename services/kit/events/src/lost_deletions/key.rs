//! Records of another service that a service has data of.

use assay_proto::{CustomerId, Fault, ProjectId, Timestamp, events::RecordChanged};
use assay_records::Action;
use sqlx::{AssertSqlSafe, FromRow, PgPool};
use uuid::Uuid;

use super::Owner;
use crate::{Event, EventType, Received, RecordKind, Stream};

/// A customer, or a project of it.
#[derive(Clone, Copy, Debug, FromRow, PartialEq)]
pub(super) struct Key {
    pub(super) customer_id: CustomerId,
    /// The nil UUID for the customer itself.
    pub(super) project_id: ProjectId,
}

impl Default for Key {
    /// Returns the key before all others.
    fn default() -> Self {
        Uuid::nil().into()
    }
}

impl Key {
    /// Returns the event that the owner has published when it has deleted the record. Its time is that of
    /// the search.
    pub(super) fn deletion(self, owner: &Owner, time: Timestamp) -> Result<Received, Fault> {
        let (kind, service) = (owner.kind(), owner.kind().service());
        let id = match kind {
            RecordKind::Customer => self.customer_id.0,
            _ => self.project_id.0,
        };
        let data = RecordChanged {
            source: kind.name().to_owned(),
            source_id: id.to_string(),
            target: RecordKind::Customer.name().to_owned(),
            target_id: Some(self.customer_id.to_string()),
            action: Action::Deleted.name().to_owned(),
            ..RecordChanged::default()
        };
        let event_type = EventType::Record(kind, Action::Deleted);
        // The same id in every search, so that what follows from the event has the same ids.
        let event = Event::new(self.customer_id, id, event_type, &data)?.with_id(id);
        Received::read(&event.to_json(Stream::of(service), time)?).map_err(Fault::internal)
    }
}

/// Lists records that this service has not deleted, after one of them.
pub(super) async fn list(
    db: &PgPool,
    live: &'static str,
    after: Key,
    limit: i64,
) -> Result<Vec<Key>, Fault> {
    let keys = sqlx::query_as(AssertSqlSafe(live));
    let keys = keys.bind(after.customer_id).bind(after.project_id).bind(limit);
    Ok(keys.fetch_all(db).await?)
}

impl From<Uuid> for Key {
    fn from(customer: Uuid) -> Self {
        Self { customer_id: CustomerId(customer), project_id: ProjectId(Uuid::nil()) }
    }
}
