//! Mails. A mail is written down in the transaction of the change that it tells of, so that none is
//! lost and none tells of what was undone; and sent afterwards, again and again until it is.

mod message;
mod store;
mod transport;

use std::{net::IpAddr, sync::Arc, time::Duration};

use assay_proto::{CustomerId, Fault};
use assay_runtime::{Database, Runtime};
use sqlx::{PgPool, PgTransaction};
use tokio::{sync::Notify, time::sleep};

use self::{message::Letter, store::Queued, transport::SendError};
pub(crate) use self::{
    store::{Mail, prune},
    transport::Transport,
};
use crate::{account, audit, membership, password_link::PasswordLinks};

/// How often the queue is looked at for the mails of other replicas, and those to be tried again.
const POLL: Duration = Duration::from_secs(2);

/// How long a mail is tried to be sent.
const GIVE_UP: Duration = Duration::from_hours(24);

/// How long links are valid.
const RESET_VALIDITY: Duration = Duration::from_hours(1);
const INVITATION_VALIDITY: Duration = Duration::from_hours(24 * 7);

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
    Invitation,
    PasswordReset,
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

    /// Writes a mail, with a new link; none if there is nobody to send it to any more. It goes to
    /// the address of the account: the one that was asked for may differ, in more than its case.
    async fn write(&self, mail: &mut Queued) -> Result<Option<Letter>, Fault> {
        let Some(account) = account::store::find(&self.db, &mail.recipient).await? else {
            return Ok(None);
        };
        mail.recipient = account.email;
        if membership::store::of_account(&self.db, account.id).await?.is_empty() {
            return Ok(None);
        }
        let validity = match mail.kind {
            Kind::Invitation if account.password_hash.is_some() => return Ok(None),
            Kind::Invitation => INVITATION_VALIDITY,
            Kind::PasswordReset => RESET_VALIDITY,
        };
        let mut tx = self.db.begin().await?;
        let link = self.links.make(&mut tx, account.id, &mail.host, validity).await?;
        if mail.kind == Kind::PasswordReset && mail.attempts == 1 {
            let action = "PasswordResetPrepared";
            audit::record_of_account(&mut tx, account.id, mail.address(), action).await?;
        }
        tx.commit().await?;
        Ok(Some(match mail.kind {
            Kind::Invitation => message::invitation(mail.customer.as_deref(), &link.url),
            Kind::PasswordReset => message::password_reset(&link.url),
        }))
    }
}

impl Mail {
    /// Asks the owner of a new account to set its password.
    pub(crate) fn invitation(email: &str, customer: CustomerId) -> Self {
        Self {
            kind: Kind::Invitation,
            recipient: email.to_owned(),
            host: String::new(),
            customer: Some(customer),
            address: None,
        }
    }

    /// Sends a link for a new password to whoever has that account, if there is one.
    pub(crate) fn password_reset(email: &str, host: &str, address: Option<IpAddr>) -> Self {
        Self {
            kind: Kind::PasswordReset,
            recipient: email.to_owned(),
            host: host.to_owned(),
            customer: None,
            address,
        }
    }

    /// Has the mail sent, if the transaction is committed.
    pub(crate) async fn enqueue(self, tx: &mut PgTransaction<'_>) -> Result<(), Fault> {
        store::insert(tx, &self).await
    }
}
