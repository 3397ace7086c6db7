//! Events and audit entries about changed records.

use assay_auth::{Caller, actor};
use assay_events::{Event, EventType, RecordKind, publish};
use assay_proto::{Actor, CustomerId, Fault, UserGroupId, UserId, events::RecordChanged};
use assay_records::Action;
use sqlx::PgTransaction;

use crate::audit::{self, Entry};

/// A record with the ids of its owners.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Record {
    Customer(CustomerId),
    UserGroup(CustomerId, UserGroupId),
    User(CustomerId, UserGroupId, UserId),
}

impl Record {
    /// Publishes a change and adds it to the audit log.
    pub(crate) async fn record_change(
        self,
        tx: &mut PgTransaction<'_>,
        action: Action,
        caller: &Caller,
        details: Option<String>,
    ) -> Result<(), Fault> {
        self.publish(tx, action).await?;
        let change = self.changed(action);
        let entry = Entry::new(&format!("{}{}", change.source, action.name()))
            .target(&change.source, &change.source_id)
            .details(details);
        audit::record(tx, caller, entry).await
    }

    /// Publishes a change.
    pub(crate) async fn publish(
        self,
        tx: &mut PgTransaction<'_>,
        action: Action,
    ) -> Result<(), Fault> {
        let change = self.changed(action);
        let event_type = EventType::Record(self.kind(), action);
        publish(tx, &Event::new(self.customer(), &change.source_id, event_type, &change)?).await
    }

    fn customer(self) -> CustomerId {
        match self {
            Self::Customer(customer) | Self::UserGroup(customer, _) | Self::User(customer, ..) => {
                customer
            }
        }
    }

    fn kind(self) -> RecordKind {
        match self {
            Self::Customer(_) => RecordKind::Customer,
            Self::UserGroup(..) => RecordKind::UserGroup,
            Self::User(..) => RecordKind::User,
        }
    }

    /// Returns who the event says has changed the record. Only operators change customers, and members of a customer
    /// do not see which of them did.
    fn actor(self) -> Actor {
        match self {
            Self::Customer(_) => actor::program(),
            Self::UserGroup(..) | Self::User(..) => actor::current(),
        }
    }

    fn changed(self, action: Action) -> RecordChanged {
        let (id, target, target_id) = match self {
            Self::Customer(id) => (id.0, "Customer", id.0),
            Self::UserGroup(owner, id) => (id.0, "Customer", owner.0),
            Self::User(_, owner, id) => (id.0, "UserGroup", owner.0),
        };
        RecordChanged {
            source: self.kind().name().to_owned(),
            source_id: id.to_string(),
            target: target.to_owned(),
            target_id: Some(target_id.to_string()),
            action: action.name().to_owned(),
            actor: Some(self.actor()),
            ..RecordChanged::default()
        }
    }
}
