//! The queue of mails in PostgreSQL.

use std::{net::IpAddr, time::Duration};

use assay_proto::{CustomerId, Fault, Timestamp, UserId, events::ExecutionChanged};
use assay_work::{Patience, Queue, Work};
use sqlx::{PgExecutor, PgTransaction, types::Json};
use uuid::Uuid;

/// Sending mails. A mail is also given up when it is a day old, or if it is refused for good.
pub(crate) const MAIL: Work = Work {
    kind: "mail",
    queue: Queue::Unfinished {
        patience: Patience {
            first: Duration::from_secs(30),
            longest: Duration::from_hours(1),
            failures: i32::MAX,
        },
        pending: "exists (select from mail where mail.id = w.id)",
        drop: "delete from mail where $1::uuid[] is not null and id = any($2)",
    },
};

/// The customer of a mail that belongs to none.
pub(crate) const NO_CUSTOMER: CustomerId = CustomerId(Uuid::nil());

/// The customer of a mail, or [`NO_CUSTOMER`]. As in the index `mail_turn_idx`.
pub(crate) const OWNER: &str =
    "coalesce(mail.customer_id, '00000000-0000-0000-0000-000000000000'::uuid)";

/// The kind of a mail.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Kind {
    /// To a mailbox whose owner has to accept a membership.
    Invitation,
    /// To the mailbox of a user whose address is about to change.
    EmailChange,
    PasswordReset,
    ExecutionEnded,
}

/// A mail to queue.
pub(crate) struct Mail {
    pub(crate) id: Uuid,
    pub(crate) kind: Kind,
    pub(crate) recipient: Option<String>,
    /// The user to send it to, if it has no recipient.
    pub(crate) user: Option<UserId>,
    /// The requested host of the link.
    pub(crate) host: Option<String>,
    /// The customer of the user.
    pub(crate) customer: Option<CustomerId>,
    /// The address that has requested it.
    pub(crate) address: Option<IpAddr>,
    pub(crate) execution: Option<ExecutionChanged>,
    /// Now by default.
    pub(crate) created_at: Option<Timestamp>,
}

impl Mail {
    /// Returns a mail without a recipient.
    pub(crate) fn new(kind: Kind) -> Self {
        Self {
            id: Uuid::now_v7(),
            kind,
            recipient: None,
            user: None,
            host: None,
            customer: None,
            address: None,
            execution: None,
            created_at: None,
        }
    }
}

impl Kind {
    const ALL: [Self; 4] =
        [Self::Invitation, Self::EmailChange, Self::PasswordReset, Self::ExecutionEnded];

    fn name(self) -> &'static str {
        match self {
            Self::Invitation => "Invitation",
            Self::EmailChange => "EmailChange",
            Self::PasswordReset => "PasswordReset",
            Self::ExecutionEnded => "ExecutionEnded",
        }
    }

    pub(crate) fn parse(name: &str) -> Result<Self, Fault> {
        let found = Self::ALL.into_iter().find(|kind| kind.name() == name);
        found.ok_or_else(|| Fault::internal(format!("unknown kind of mail: {name}")))
    }
}

/// Adds a mail to the queue, unless one with its id is queued, or what it reports is older than a day.
pub(crate) async fn insert(tx: &mut PgTransaction<'_>, mail: &Mail) -> Result<(), Fault> {
    sqlx::query(
        "insert into mail (id, kind, recipient, user_id, host, customer_id, address, execution,
                           created_at)
         select $1, $2, $3, $4::uuid, $5, $6::uuid, $7, $8::jsonb, created_at
         from (select coalesce($9, now()) as created_at) as reported
         where created_at > now() - interval '1 day'
         on conflict on constraint mail_pkey do nothing",
    )
    .bind(mail.id)
    .bind(mail.kind.name())
    .bind(&mail.recipient)
    .bind(mail.user)
    .bind(&mail.host)
    .bind(mail.customer)
    .bind(mail.address.map(|address| address.to_string()))
    .bind(mail.execution.as_ref().map(Json))
    .bind(mail.created_at)
    .execute(&mut **tx)
    .await?;
    Ok(())
}

/// Ends the claim of a mail that was not sent, with the number of its attempts, unless another replica has
/// claimed the mail since. Claims do not read the mail until its next attempt.
pub(crate) async fn release(db: impl PgExecutor<'_>, id: Uuid, attempts: i32) -> Result<(), Fault> {
    let release = sqlx::query(
        "update mail set next_attempt_at = coalesce(
             (select w.next_attempt_at from unfinished_work w
              where w.kind = $3 and w.customer_id = coalesce(mail.customer_id, $4) and w.id = mail.id),
             now())
         where id = $1 and attempts = $2",
    );
    let release = release.bind(id).bind(attempts).bind(MAIL.kind).bind(NO_CUSTOMER);
    release.execute(db).await?;
    Ok(())
}

pub(crate) async fn delete(db: impl PgExecutor<'_>, id: Uuid) -> Result<(), Fault> {
    sqlx::query("delete from mail where id = $1").bind(id).execute(db).await?;
    Ok(())
}

/// Deletes mails that were given up a month ago.
pub(crate) async fn prune(db: impl PgExecutor<'_>) -> Result<(), Fault> {
    sqlx::query("delete from mail where created_at < now() - interval '31 days'")
        .execute(db)
        .await?;
    Ok(())
}
