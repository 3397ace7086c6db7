//! The queue of mails in PostgreSQL.

use std::{net::IpAddr, time::Duration};

use assay_proto::{CustomerId, Fault, Timestamp, UserId, events::ExecutionChanged};
use assay_work::{Patience, Queue, Work};
use sqlx::{AssertSqlSafe, PgExecutor, PgTransaction, types::Json};
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
const NO_CUSTOMER: CustomerId = CustomerId(Uuid::nil());

/// The kind of a mail.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Kind {
    /// To a mailbox whose owner has to accept a membership.
    Invitation,
    /// To the mailbox of a user whose address is about to change.
    EmailChange,
    PasswordReset,
    ExecutionEnded,
}

/// A mail to queue.
pub(crate) struct Mail {
    pub(super) id: Uuid,
    pub(super) kind: Kind,
    pub(super) recipient: Option<String>,
    /// The user to send it to, if it has no recipient.
    pub(super) user: Option<UserId>,
    /// The requested host of the link.
    pub(super) host: Option<String>,
    /// The customer of the user.
    pub(super) customer: Option<CustomerId>,
    /// The address that has requested it.
    pub(super) address: Option<IpAddr>,
    pub(super) execution: Option<ExecutionChanged>,
    /// Now by default.
    pub(super) created_at: Option<Timestamp>,
}

/// A due mail.
pub(super) struct Queued {
    pub(super) id: Uuid,
    pub(super) kind: Kind,
    /// Empty if the mail is for a user whose address is looked up when it is written.
    pub(super) recipient: String,
    pub(super) host: String,
    /// The name of the customer.
    pub(super) customer: Option<String>,
    pub(super) user: Option<(CustomerId, UserId)>,
    /// The customer whose mail it is, for its attempts.
    pub(super) owner: CustomerId,
    /// Number of attempts, including this one.
    pub(super) attempts: i32,
    pub(super) execution: Option<EndedExecution>,
    address: Option<String>,
}

/// An execution that has ended, and its requester.
pub(super) struct EndedExecution {
    pub(super) customer: CustomerId,
    pub(super) requester: UserId,
    pub(super) execution: ExecutionChanged,
}

impl Mail {
    /// Returns a mail without a recipient.
    pub(super) fn new(kind: Kind) -> Self {
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

impl Queued {
    /// Returns the address that has requested it.
    pub(super) fn address(&self) -> Option<IpAddr> {
        self.address.as_ref()?.parse().ok()
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

    fn parse(name: &str) -> Result<Self, Fault> {
        let found = Self::ALL.into_iter().find(|kind| kind.name() == name);
        found.ok_or_else(|| Fault::internal(format!("unknown kind of mail: {name}")))
    }
}

/// Adds a mail to the queue, unless one with its id is queued, or what it reports is older than a day.
pub(super) async fn insert(tx: &mut PgTransaction<'_>, mail: &Mail) -> Result<(), Fault> {
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

#[derive(sqlx::FromRow)]
struct Row {
    id: Uuid,
    kind: String,
    recipient: Option<String>,
    user_id: Option<UserId>,
    host: Option<String>,
    customer_id: Option<CustomerId>,
    customer: Option<String>,
    address: Option<String>,
    execution: Option<Json<ExecutionChanged>>,
    attempts: i32,
}

impl Row {
    fn ended_execution(&mut self) -> Option<EndedExecution> {
        let (customer, requester) = self.customer_id.zip(self.user_id)?;
        let Json(execution) = self.execution.take()?;
        Some(EndedExecution { customer, requester, execution })
    }
}

/// Claims the next due mail for five minutes, which is longer than sending it takes. Links take precedence over reports of executions.
pub(super) async fn claim(db: impl PgExecutor<'_>) -> Result<Option<Queued>, Fault> {
    let is_due = MAIL.is_due("coalesce(mail.customer_id, $1)", "mail.id");
    let row: Option<Row> = sqlx::query_as(AssertSqlSafe(format!(
        "update mail
         set attempts = attempts + 1, next_attempt_at = now() + interval '5 minutes'
         where id = (select id from mail where next_attempt_at <= now() and {is_due}
                     order by kind = 'ExecutionEnded', next_attempt_at limit 1
                     for update skip locked)
         returning id, kind, recipient, user_id, host, customer_id, attempts, address, execution,
                   (select name from customer where customer.id = mail.customer_id) as customer"
    )))
    .bind(NO_CUSTOMER)
    .fetch_optional(db)
    .await?;
    let Some(mut row) = row else { return Ok(None) };
    Ok(Some(Queued {
        id: row.id,
        kind: Kind::parse(&row.kind)?,
        execution: row.ended_execution(),
        recipient: row.recipient.unwrap_or_default(),
        host: row.host.unwrap_or_default(),
        user: row.customer_id.zip(row.user_id),
        owner: row.customer_id.unwrap_or(NO_CUSTOMER),
        customer: row.customer,
        attempts: row.attempts,
        address: row.address,
    }))
}

/// Ends the claim of a mail that was not sent. Claims do not read it until its next attempt.
pub(super) async fn release(db: impl PgExecutor<'_>, id: Uuid) -> Result<(), Fault> {
    let release = sqlx::query(
        "update mail set next_attempt_at = coalesce(
             (select w.next_attempt_at from unfinished_work w
              where w.kind = $2 and w.customer_id = coalesce(mail.customer_id, $3) and w.id = mail.id),
             now())
         where id = $1",
    );
    release.bind(id).bind(MAIL.kind).bind(NO_CUSTOMER).execute(db).await?;
    Ok(())
}

pub(super) async fn delete(db: impl PgExecutor<'_>, id: Uuid) -> Result<(), Fault> {
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
