//! Handlers for events of other services.

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

/// Adds access to secrets to the audit log.
pub(crate) struct Secrets;

impl Handler for Secrets {
    async fn handle(&self, tx: &mut PgTransaction<'_>, event: &Received) -> Result<(), Fault> {
        let Some(EventType::SecretsSeen) = event.event_type() else { return Ok(()) };
        let seen: SecretsSeen = event.data()?;
        let actor = Actor {
            customer: event.customer(),
            user: UserId::from_field("UserId", &seen.user_id)?,
            address: seen.address.and_then(|address| address.parse().ok()),
        };
        let entry = Entry::new("SecretsSeen").target(&seen.source, &seen.source_id);
        audit::record(tx, actor, entry).await
    }
}

/// Queues a mail to the requester of an execution when it ends, if the requester has enabled these
/// mails.
pub(crate) struct Executions;

impl Handler for Executions {
    async fn handle(&self, tx: &mut PgTransaction<'_>, event: &Received) -> Result<(), Fault> {
        match event.event_type() {
            Some(EventType::Execution(ExecutionAction::Completed | ExecutionAction::Canceled)) => {
                mail_requester(tx, event).await
            }
            _ => Ok(()),
        }
    }
}

async fn mail_requester(tx: &mut PgTransaction<'_>, event: &Received) -> Result<(), Fault> {
    let ended: ExecutionChanged = event.data()?;
    if ended.is_past == Some(true) {
        return Ok(());
    }
    // Events of earlier versions do not have the requester.
    let requester = UserId::from_field_if_any("RequestedById", ended.requested_by_id.as_deref())?;
    let Some(requester) = requester else { return Ok(()) };
    if !user_settings::wants_mail(tx, event.customer(), requester).await? {
        return Ok(());
    }
    Mail::execution_ended(event.customer(), requester, event.time(), ended)?.enqueue(tx).await
}
