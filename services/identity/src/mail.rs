//! Mails. A mail is queued in the transaction of the change that it reports, so that no mail is
//! lost or sent for a change that was rolled back. The sender then retries it until it is sent.

mod age;
pub(crate) mod claim;
pub(crate) mod message;
mod smtp;
pub(crate) mod store;
pub(crate) mod transport;

use std::{net::IpAddr, sync::Arc, time::Duration};

use assay_proto::{CustomerId, ExecutionId, Fault, Timestamp, UserId, events::ExecutionChanged};
use sqlx::PgTransaction;
use tokio::sync::Notify;

use self::store::Kind;
pub(crate) use self::{
    age::age,
    store::{MAIL, Mail, prune},
};

/// Validity of links in mails.
pub(crate) const RESET_VALIDITY: Duration = Duration::from_hours(1);
pub(crate) const INVITATION_VALIDITY: Duration = Duration::from_hours(24 * 7);

/// Wakes the sender.
#[derive(Clone, Default)]
pub(crate) struct MailNotifier(Arc<Notify>);

impl MailNotifier {
    /// Wakes the sender after a mail was committed. Without it, the sender finds the mail at its
    /// next poll.
    pub(crate) fn notify(&self) {
        self.0.notify_one();
    }

    /// Waits for a call of [`MailNotifier::notify`].
    pub(crate) async fn notified(&self) {
        self.0.notified().await;
    }
}

impl Mail {
    /// An invitation to the mailbox whose owner has to accept a membership.
    pub(crate) fn invitation(customer: CustomerId, user: UserId) -> Self {
        Self { customer: Some(customer), user: Some(user), ..Self::new(Kind::Invitation) }
    }

    /// A notice to a user that another mailbox was invited to replace theirs.
    pub(crate) fn email_change(customer: CustomerId, user: UserId) -> Self {
        Self { customer: Some(customer), user: Some(user), ..Self::new(Kind::EmailChange) }
    }

    /// A link for a new password to the account with that email, if there is one.
    pub(crate) fn password_reset(email: &str, host: &str, address: Option<IpAddr>) -> Self {
        let mail = Self::new(Kind::PasswordReset);
        let (recipient, host) = (Some(email.to_owned()), Some(host.to_owned()));
        Self { recipient, host, address, ..mail }
    }

    /// A report to the requester of an execution that has ended. Its id is that of the execution,
    /// so that it is queued once.
    pub(crate) fn execution_ended(
        customer: CustomerId,
        requester: UserId,
        ended_at: Timestamp,
        execution: ExecutionChanged,
    ) -> Result<Self, Fault> {
        let id = ExecutionId::from_field("ExecutionId", &execution.execution_id)?;
        Ok(Self {
            id: id.0,
            user: Some(requester),
            customer: Some(customer),
            execution: Some(execution),
            created_at: Some(ended_at),
            ..Self::new(Kind::ExecutionEnded)
        })
    }

    /// Queues the mail in a transaction.
    pub(crate) async fn enqueue(self, tx: &mut PgTransaction<'_>) -> Result<(), Fault> {
        store::insert(tx, &self).await
    }
}
