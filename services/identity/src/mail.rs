//! Mails. A mail is written down in the transaction of the change that it tells of, so that none is
//! lost and none tells of what was undone; and sent afterwards, again and again until it is.

mod message;
mod store;
mod transport;

use std::{net::IpAddr, sync::Arc, time::Duration};

use assay_proto::{
    AccountId, CustomerId, ExecutionId, Fault, Timestamp, UserId, events::ExecutionChanged,
};
use assay_runtime::{Database, Runtime, begin};
use sqlx::{PgPool, PgTransaction};
use tokio::{sync::Notify, time::sleep};

use self::{
    message::Letter,
    store::{Queued, Report},
    transport::SendError,
};
pub(crate) use self::{
    store::{Mail, prune},
    transport::Transport,
};
use crate::{
    account, audit,
    invitation::{self, store::Invitation},
    membership,
    password_link::PasswordLinks,
    user_settings,
};

/// How often the queue is looked at for the mails of other replicas, and those to be tried again.
const POLL: Duration = Duration::from_secs(2);

/// How long a mail is tried to be sent.
const GIVE_UP: Duration = Duration::from_hours(24);

/// How long links are valid.
const RESET_VALIDITY: Duration = Duration::from_hours(1);
pub(crate) const INVITATION_VALIDITY: Duration = Duration::from_hours(24 * 7);

/// Tells the sender that there is something to send.
#[derive(Clone, Default)]
pub(crate) struct Mails(Arc<Notify>);

impl Mails {
    /// To be called after a mail was committed. Without it, it is sent a little later.
    pub(crate) fn committed(&self) {
        self.0.notify_one();
    }
}

/// Why a mail is sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Kind {
    /// To a mailbox whose owner has to accept a membership.
    Invitation,
    /// To the mailbox of a user whose address is to change.
    EmailChange,
    PasswordReset,
    ExecutionEnded,
}

/// Sends the mails that are queued.
pub(crate) struct Sender {
    pub(crate) db: PgPool,
    pub(crate) transport: Transport,
    pub(crate) links: PasswordLinks,
}

impl Sender {
    /// Sends from when the database is migrated until the program stops.
    pub(crate) fn spawn(self, runtime: &Runtime, database: &Database) {
        let (database, stopping) = (database.clone(), runtime.stopping());
        runtime.spawn("mails", async move {
            let work = async {
                database.ready().await;
                loop {
                    match self.send_next().await {
                        Ok(true) => continue,
                        Ok(false) => {}
                        Err(Fault::Unavailable(_)) => tracing::debug!("the mails cannot be read"),
                        Err(fault) => tracing::error!(%fault, "a mail cannot be made"),
                    }
                    tokio::select! {
                        () = sleep(POLL) => {}
                        () = self.links.mails.0.notified() => {}
                    }
                }
            };
            stopping.run_until_cancelled(work).await;
            Ok(())
        });
    }

    /// Sends the mail that is due first; false if none is.
    async fn send_next(&self) -> Result<bool, Fault> {
        let Some(mut mail) = store::claim(&self.db).await? else { return Ok(false) };
        let Some(letter) = self.write(&mut mail).await? else {
            store::delete(&self.db, mail.id).await?;
            return Ok(true);
        };
        match self.transport.send(&mail, &letter).await {
            Ok(()) => store::delete(&self.db, mail.id).await?,
            Err(SendError::Passing(error)) if mail.age < GIVE_UP => {
                tracing::warn!(mail.id = %mail.id, error, "a mail cannot be sent yet");
            }
            Err(SendError::Passing(error) | SendError::Refused(error)) => {
                tracing::error!(mail.id = %mail.id, error, "a mail cannot be sent; given up");
                store::delete(&self.db, mail.id).await?;
            }
        }
        Ok(true)
    }

    /// Writes a mail; none if there is nobody to send it to any more.
    async fn write(&self, mail: &mut Queued) -> Result<Option<Letter>, Fault> {
        match mail.kind {
            Kind::Invitation => self.write_invitation(mail).await,
            Kind::EmailChange => self.write_notice(mail).await,
            Kind::PasswordReset => self.write_link(mail).await,
            Kind::ExecutionEnded => self.write_report(mail).await,
        }
    }

    /// Writes to the requester of an execution, if they still want to know of it, and may.
    async fn write_report(&self, mail: &mut Queued) -> Result<Option<Letter>, Fault> {
        let Some(Report { customer, requester, execution }) = mail.report.take() else {
            return Ok(None);
        };
        let mut db = self.db.acquire().await?;
        if mail.age >= GIVE_UP || !user_settings::wants_mail(&mut db, customer, requester).await? {
            return Ok(None);
        }
        mail.recipient = account::store::of_user(&mut *db, requester).await?.1;
        let customer = mail.customer.as_deref().unwrap_or_default();
        let origin = self.links.hosts.public.origin().ascii_serialization();
        Ok(Some(message::execution_ended(customer, &origin, &execution)))
    }

    /// Writes to a mailbox that is still invited.
    async fn write_invitation(&self, mail: &mut Queued) -> Result<Option<Letter>, Fault> {
        let Some((customer, user)) = mail.user else { return Ok(None) };
        match invitation::store::find(&self.db, customer, user).await? {
            Some(invitation) => self.invite(mail, invitation).await.map(Some),
            None => Ok(None),
        }
    }

    async fn invite(&self, mail: &mut Queued, to: Invitation) -> Result<Letter, Fault> {
        let mut tx = begin(&self.db).await?;
        let (customer, user) = (to.customer_id, to.user_id);
        let link = self.links.invite(&mut tx, customer, user, INVITATION_VALIDITY).await?;
        tx.commit().await?;
        mail.recipient = to.email;
        Ok(message::invitation(&to.name, &link.url))
    }

    /// Writes to a user whose address is still to change.
    async fn write_notice(&self, mail: &mut Queued) -> Result<Option<Letter>, Fault> {
        let Some((customer, user)) = mail.user else { return Ok(None) };
        let Some(invitation) = invitation::store::find(&self.db, customer, user).await? else {
            return Ok(None);
        };
        match account::store::of_user(&self.db, user).await {
            Ok((_, email)) => mail.recipient = email,
            Err(Fault::NotFound(_)) => return Ok(None),
            Err(fault) => return Err(fault),
        }
        Ok(Some(message::email_change(&invitation.name)))
    }

    /// Writes a mail with a link for a new password, or with the latest invitation if the address
    /// has no account that it could be used for. It goes to the address of the account: the one that
    /// was asked for may differ, in more than its case.
    async fn write_link(&self, mail: &mut Queued) -> Result<Option<Letter>, Fault> {
        if let Some(account) = account::store::find(&self.db, &mail.recipient).await?
            && !membership::store::of_account(&self.db, account.id).await?.is_empty()
        {
            mail.recipient = account.email;
            return self.write_reset(mail, account.id).await.map(Some);
        }
        match invitation::store::latest(&self.db, &mail.recipient).await? {
            Some(invitation) => self.invite(mail, invitation).await.map(Some),
            None => Ok(None),
        }
    }

    async fn write_reset(&self, mail: &Queued, account: AccountId) -> Result<Letter, Fault> {
        let mut tx = begin(&self.db).await?;
        let link = self.links.make(&mut tx, account, &mail.host, RESET_VALIDITY).await?;
        if mail.attempts == 1 {
            let action = "PasswordResetPrepared";
            audit::record_of_account(&mut tx, account, mail.address(), action).await?;
        }
        tx.commit().await?;
        Ok(message::password_reset(&link.url))
    }
}

impl Mail {
    /// Asks the owner of the mailbox that a user was invited at to accept.
    pub(crate) fn invitation(customer: CustomerId, user: UserId) -> Self {
        Self { customer: Some(customer), user: Some(user), ..Self::new(Kind::Invitation) }
    }

    /// Tells a user that another mailbox was invited to take their place.
    pub(crate) fn email_change(customer: CustomerId, user: UserId) -> Self {
        Self { customer: Some(customer), user: Some(user), ..Self::new(Kind::EmailChange) }
    }

    /// Sends a link for a new password to whoever has that account, if there is one.
    pub(crate) fn password_reset(email: &str, host: &str, address: Option<IpAddr>) -> Self {
        let mail = Self::new(Kind::PasswordReset);
        let (recipient, host) = (Some(email.to_owned()), Some(host.to_owned()));
        Self { recipient, host, address, ..mail }
    }

    /// Tells the requester of an execution how it has ended, and that it has at that time.
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
            since: Some(ended_at),
            ..Self::new(Kind::ExecutionEnded)
        })
    }

    /// Has the mail sent, if the transaction is committed.
    pub(crate) async fn enqueue(self, tx: &mut PgTransaction<'_>) -> Result<(), Fault> {
        store::insert(tx, &self).await
    }
}
