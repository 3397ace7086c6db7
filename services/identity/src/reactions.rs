//! What happens in other services and belongs into the audit record.

use assay_events::{Handler, Received};
use assay_proto::{Fault, UserId, events::SecretsSeen};
use sqlx::PgTransaction;

use crate::audit::{self, Actor, Entry};

/// Writes down who has seen secrets.
pub(crate) struct Reactions;

impl Handler for Reactions {
    async fn handle(&self, tx: &mut PgTransaction<'_>, event: &Received) -> Result<(), Fault> {
        let seen: SecretsSeen = event.data()?;
        let actor = Actor {
            customer: event.customer(),
            user: UserId::parse("UserId", &seen.user_id)?,
            address: seen.address.and_then(|address| address.parse().ok()),
        };
        audit::record(tx, actor, Entry::new("SecretsSeen").of(&seen.source, &seen.source_id)).await
    }
}
