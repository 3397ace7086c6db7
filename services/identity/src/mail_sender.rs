//! The sender: writes and sends queued mails.

use std::{sync::Arc, time::Duration};

use assay_database::{Database, begin};
use assay_proto::{AccountId, Fault};
use assay_runtime::Runtime;
use assay_work::{InTurns, Turns, causes};
use sqlx::PgPool;
use tokio_util::sync::CancellationToken;

use crate::{
    account, audit,
    invitation::{self, store::Invitation},
    mail::{
        INVITATION_VALIDITY, MAIL, RESET_VALIDITY,
        claim::{EndedExecution, Queued, Turn, claim},
        message::{self, Letter},
        store::{self, Kind},
        transport::{SendError, Transport},
    },
    membership,
    password_link::PasswordLinks,
    user_settings,
};

/// Interval of polls for mails of other replicas and for retries.
const POLL: Duration = Duration::from_secs(2);

/// Time after the first attempt after which a mail that cannot be sent is given up.
const MAX_AGE: Duration = Duration::from_hours(24);

/// Time of a claim beyond the deadline of sending: for writing the mail and recording the attempt. If a
/// program is frozen for longer, its late failure is not recorded; if it has sent the mail, that is,
/// so that the mail is not sent once more.
const MARGIN: Duration = Duration::from_mins(2);

const ATTEMPTS: &str = "assay_mail_attempts_total";

/// Sends queued mails.
pub(crate) struct Sender {
    pub(crate) db: PgPool,
    pub(crate) transport: Transport,
    pub(crate) links: PasswordLinks,
    /// Whether mails link to pages of the console.
    pub(crate) has_console: bool,
}

impl InTurns for Sender {
    const TASK: &'static str = "mails";
    const POLL: Duration = POLL;
    const PAUSE: Duration = Duration::ZERO;
    const STOP_GRACE: Duration = Duration::from_secs(5);

    type Claimed = Queued;
    type Turn = Turn;

    fn turn(mail: &Queued) -> Turn {
        mail.turn.clone()
    }

    async fn claim(&self, running: &Turns<Turn>) -> Result<Vec<Queued>, Fault> {
        let validity = self.transport.deadline + MARGIN;
        claim(&self.db, self.transport.most, running, validity).await
    }

    async fn signal(&self) {
        self.links.mails.notified().await;
    }

    /// Sends a claimed mail and records the attempt. If that fails, the mail is sent again after the
    /// claim has expired.
    async fn run(self: Arc<Self>, mut mail: Queued, _: CancellationToken) {
        match self.try_send(&mut mail).await {
            Ok(()) => {}
            Err(fault @ Fault::Unavailable(_)) => tracing::debug!(%fault, "cannot send a mail"),
            Err(fault) => tracing::error!(%fault, "failed to send a mail"),
        }
    }
}

impl Sender {
    /// Starts sending when the database is ready, until the program stops.
    pub(crate) fn start(self, runtime: &Runtime, database: &Database) {
        metrics::describe_counter!(
            ATTEMPTS,
            metrics::Unit::Count,
            "Attempts to send a mail, by their result."
        );
        for result in ["sent", "failed"] {
            metrics::counter!(ATTEMPTS, "result" => result).increment(0);
        }
        self.spawn(runtime, database);
    }

    async fn try_send(&self, mail: &mut Queued) -> Result<(), Fault> {
        let Some(attempt) = MAIL.begin(&self.db, mail.owner, mail.id).await? else {
            return store::release(&self.db, mail.id, mail.attempts).await;
        };
        let sent = self.write_and_send(mail).await;
        let result = if sent.is_ok() { "sent" } else { "failed" };
        metrics::counter!(ATTEMPTS, "result" => result).increment(1);
        match sent {
            Ok(()) => {
                let mut tx = begin(&self.db).await?;
                store::delete(&mut *tx, mail.id).await?;
                attempt.done(&mut *tx).await?;
                tx.commit().await?;
            }
            Err(SendError::Transient(reason)) if attempt.age < MAX_AGE => {
                attempt.failed_because(&self.db, &reason).await?;
                store::release(&self.db, mail.id, mail.attempts).await?;
            }
            Err(SendError::Transient(reason) | SendError::Permanent(reason)) => {
                attempt.give_up(&self.db, &reason).await?;
                store::release(&self.db, mail.id, mail.attempts).await?;
            }
        }
        Ok(())
    }

    /// Writes a mail and sends it, unless it has no recipient any more.
    async fn write_and_send(&self, mail: &mut Queued) -> Result<(), SendError> {
        let letter = self.write(mail).await;
        match letter.map_err(|fault| SendError::Transient(causes(&fault)))? {
            Some(letter) => self.transport.send(mail, &letter).await,
            None => Ok(()),
        }
    }

    /// Writes a mail; returns none if it has no recipient any more.
    async fn write(&self, mail: &mut Queued) -> Result<Option<Letter>, Fault> {
        match mail.kind {
            Kind::Invitation => self.write_invitation(mail).await,
            Kind::EmailChange => self.write_email_change(mail).await,
            Kind::PasswordReset => self.write_password_reset(mail).await,
            Kind::ExecutionEnded => self.write_execution_ended(mail).await,
        }
    }

    /// Writes to the requester of an execution who has enabled these mails and may read the
    /// execution.
    async fn write_execution_ended(&self, mail: &mut Queued) -> Result<Option<Letter>, Fault> {
        let Some(EndedExecution { customer, requester, execution }) = mail.execution.take() else {
            return Ok(None);
        };
        let mut db = self.db.acquire().await?;
        if !user_settings::wants_mail(&mut db, customer, requester).await? {
            return Ok(None);
        }
        mail.recipient = account::store::of_user(&mut *db, requester).await?.1;
        let customer = mail.customer.as_deref().unwrap_or_default();
        let origin = self.links.hosts.public.origin().ascii_serialization();
        Ok(Some(message::execution_ended(customer, &origin, self.has_console, &execution)))
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
        let url = self.links.invite(&mut tx, customer, user, INVITATION_VALIDITY).await?;
        tx.commit().await?;
        mail.recipient = to.email;
        Ok(message::invitation(&to.customer_name, &url))
    }

    /// Writes to a user whose address is still about to change.
    async fn write_email_change(&self, mail: &mut Queued) -> Result<Option<Letter>, Fault> {
        let Some((customer, user)) = mail.user else { return Ok(None) };
        let Some(invitation) = invitation::store::find(&self.db, customer, user).await? else {
            return Ok(None);
        };
        match account::store::of_user(&self.db, user).await {
            Ok((_, email)) => mail.recipient = email,
            Err(Fault::NotFound(_)) => return Ok(None),
            Err(fault) => return Err(fault),
        }
        Ok(Some(message::email_change(&invitation.customer_name)))
    }

    /// Writes a link for a new password, or the latest invitation if the address has no account
    /// with a membership. The recipient is the address of the account, which may differ from the
    /// requested one in more than its case.
    async fn write_password_reset(&self, mail: &mut Queued) -> Result<Option<Letter>, Fault> {
        if let Some(account) = account::store::find(&self.db, &mail.recipient).await?
            && !membership::store::of_account(&self.db, account.id).await?.is_empty()
        {
            mail.recipient = account.email;
            return self.reset(mail, account.id).await.map(Some);
        }
        match invitation::store::latest(&self.db, &mail.recipient).await? {
            Some(invitation) => self.invite(mail, invitation).await.map(Some),
            None => Ok(None),
        }
    }

    async fn reset(&self, mail: &Queued, account: AccountId) -> Result<Letter, Fault> {
        let mut tx = begin(&self.db).await?;
        let url = self.links.create(&mut tx, account, &mail.host, RESET_VALIDITY).await?;
        if mail.attempts == 1 {
            let action = "PasswordResetPrepared";
            audit::record_of_account(&mut tx, account, mail.address(), action).await?;
        }
        tx.commit().await?;
        Ok(message::password_reset(&url))
    }
}
