//! What happens in other services and concerns users.

use assay_events::{EventType, ExecutionAction, Handler, Received};
use assay_proto::{
    Fault, UserId,
    events::{ExecutionChanged, SecretsSeen},
};
use sqlx::PgTransaction;

use crate::{
    audit::{self, Actor, Entry},
    mail::Mail,
    user_settings,
};

/// Writes down who has seen secrets.
pub(crate) struct Secrets;

impl Handler for Secrets {
    async fn handle(
        &self,
        tx: &mut PgTransaction<'_>,
        event_type: EventType,
        event: &Received,
    ) -> Result<(), Fault> {
        match event_type {
            EventType::SecretsSeen => record_access(tx, event).await,
            EventType::Record(..)
            | EventType::RetentionSet
            | EventType::Execution(_)
            | EventType::Reports(_) => Ok(()),
        }
    }
}

async fn record_access(tx: &mut PgTransaction<'_>, event: &Received) -> Result<(), Fault> {
    let seen: SecretsSeen = event.data()?;
    let actor = Actor {
        customer: event.customer(),
        user: UserId::from_field("UserId", &seen.user_id)?,
        address: seen.address.and_then(|address| address.parse().ok()),
    };
    audit::record(tx, actor, Entry::new("SecretsSeen").of(&seen.source, &seen.source_id)).await
}

/// Sends a mail to those who want one when an execution of theirs ends.
pub(crate) struct Executions;

impl Handler for Executions {
    async fn handle(
        &self,
        tx: &mut PgTransaction<'_>,
        event_type: EventType,
        event: &Received,
    ) -> Result<(), Fault> {
        match event_type {
            EventType::Execution(ExecutionAction::Completed | ExecutionAction::Canceled) => {
                mail_requester(tx, event).await
            }
            EventType::Execution(
                ExecutionAction::Requested | ExecutionAction::Progressed | ExecutionAction::Rebuilt,
            )
            | EventType::Record(..)
            | EventType::SecretsSeen
            | EventType::RetentionSet
            | EventType::Reports(_) => Ok(()),
        }
    }
}

async fn mail_requester(tx: &mut PgTransaction<'_>, event: &Received) -> Result<(), Fault> {
    let ended: ExecutionChanged = event.data()?;
    // Events from before there were such mails do not say.
    let requester = UserId::from_field_if_any("RequestedById", ended.requested_by_id.as_deref())?;
    let Some(requester) = requester else { return Ok(()) };
    if !user_settings::wants_mail(tx, event.customer(), requester).await? {
        return Ok(());
    }
    Mail::execution_ended(event.customer(), requester, event.time(), ended)?.enqueue(tx).await
}
