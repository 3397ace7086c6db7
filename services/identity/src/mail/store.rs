//! The queue of mails in PostgreSQL.

use std::{net::IpAddr, time::Duration};

use assay_proto::{CustomerId, Fault, Timestamp, UserId, events::ExecutionChanged};
use sqlx::{PgExecutor, PgTransaction, types::Json};
use uuid::Uuid;

use super::Kind;

/// A mail to be sent.
pub(crate) struct Mail {
    pub(super) id: Uuid,
    pub(super) kind: Kind,
    pub(super) recipient: Option<String>,
    /// The user it goes to, where there is no recipient.
    pub(super) user: Option<UserId>,
    /// Where the recipient wants the link to lead to.
    pub(super) host: Option<String>,
    /// The user's customer.
    pub(super) customer: Option<CustomerId>,
    /// Who asked for it.
    pub(super) address: Option<IpAddr>,
    pub(super) execution: Option<ExecutionChanged>,
    /// When there was a reason for it; now, unless set.
    pub(super) since: Option<Timestamp>,
}

/// A mail whose turn it is.
pub(super) struct Queued {
    pub(super) id: Uuid,
    pub(super) kind: Kind,
    /// Of a mail to a user, none yet.
    pub(super) recipient: String,
    pub(super) host: String,
    /// The name of the user's customer.
    pub(super) customer: Option<String>,
    pub(super) user: Option<(CustomerId, UserId)>,
    /// How often it was tried, this time included.
    pub(super) attempts: i32,
    pub(super) age: Duration,
    pub(super) report: Option<Report>,
    address: Option<String>,
}

/// What is to be told to the requester of an execution.
pub(super) struct Report {
    pub(super) customer: CustomerId,
    pub(super) requester: UserId,
    pub(super) execution: ExecutionChanged,
}

impl Mail {
    /// A mail that says nothing yet.
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
            since: None,
        }
    }
}

impl Queued {
    /// Who asked for it.
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

    fn named(name: &str) -> Result<Self, Fault> {
        let found = Self::ALL.into_iter().find(|kind| kind.name() == name);
        found.ok_or_else(|| Fault::internal(format!("no mail is of the kind {name}")))
    }
}

/// Adds a mail to the queue, unless the same is there.
pub(super) async fn insert(tx: &mut PgTransaction<'_>, mail: &Mail) -> Result<(), Fault> {
    sqlx::query(
        "insert into mail (id, kind, recipient, user_id, host, customer_id, address, execution,
                           created_at)
         values ($1, $2, $3, $4, $5, $6, $7, $8, coalesce($9, now()))
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
    .bind(mail.since)
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
    age_in_s: f64,
}

impl Row {
    fn report(&mut self) -> Option<Report> {
        let (customer, requester) = self.customer_id.zip(self.user_id)?;
        let Json(execution) = self.execution.take()?;
        Some(Report { customer, requester, execution })
    }
}

/// Takes the mail that is due first, for as long as it is not tried again: from 30 seconds up to an
/// hour, the longer the more often it was tried. However many reports there are, a link goes first.
pub(super) async fn claim(db: impl PgExecutor<'_>) -> Result<Option<Queued>, Fault> {
    let row: Option<Row> = sqlx::query_as(
        "update mail
         set attempts = attempts + 1,
             next_attempt_at = now() + least(interval '1 hour',
                                             interval '30 seconds' * power(2, least(attempts, 8)))
         where id = (select id from mail where next_attempt_at <= now()
                     order by kind = 'ExecutionEnded', next_attempt_at limit 1
                     for update skip locked)
         returning id, kind, recipient, user_id, host, customer_id, attempts, address, execution,
                   (select name from customer where customer.id = mail.customer_id) as customer,
                   extract(epoch from now() - created_at)::float8 as age_in_s",
    )
    .fetch_optional(db)
    .await?;
    let Some(mut row) = row else { return Ok(None) };
    Ok(Some(Queued {
        id: row.id,
        kind: Kind::named(&row.kind)?,
        report: row.report(),
        recipient: row.recipient.unwrap_or_default(),
        host: row.host.unwrap_or_default(),
        user: row.customer_id.zip(row.user_id),
        customer: row.customer,
        attempts: row.attempts,
        age: Duration::from_secs_f64(row.age_in_s.max(0.0)),
        address: row.address,
    }))
}

pub(super) async fn delete(db: impl PgExecutor<'_>, id: Uuid) -> Result<(), Fault> {
    sqlx::query("delete from mail where id = $1").bind(id).execute(db).await?;
    Ok(())
}

/// Removes the mails that could never be written.
pub(crate) async fn prune(db: impl PgExecutor<'_>) -> Result<(), Fault> {
    sqlx::query("delete from mail where created_at < now() - interval '2 days'")
        .execute(db)
        .await?;
    Ok(())
}
