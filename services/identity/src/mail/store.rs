//! The queue of mails in PostgreSQL.

use std::{net::IpAddr, time::Duration};

use assay_proto::{CustomerId, Fault};
use sqlx::{PgExecutor, PgTransaction};
use uuid::Uuid;

use super::Kind;

/// A mail to be sent.
pub(crate) struct Mail {
    pub(super) kind: Kind,
    pub(super) recipient: String,
    /// Where the recipient wants the link to lead to.
    pub(super) host: String,
    /// The customer that invites.
    pub(super) customer: Option<CustomerId>,
    /// Who asked for it.
    pub(super) address: Option<IpAddr>,
}

/// A mail whose turn it is.
pub(super) struct Queued {
    pub(super) id: Uuid,
    pub(super) kind: Kind,
    pub(super) recipient: String,
    pub(super) host: String,
    /// The name of the customer that invites.
    pub(super) customer: Option<String>,
    /// How often it was tried, this time included.
    pub(super) attempts: i32,
    pub(super) age: Duration,
    address: Option<String>,
}

impl Queued {
    /// Who asked for it.
    pub(super) fn address(&self) -> Option<IpAddr> {
        self.address.as_ref()?.parse().ok()
    }
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Invitation => "Invitation",
            Self::PasswordReset => "PasswordReset",
        }
    }
}

pub(super) async fn insert(tx: &mut PgTransaction<'_>, mail: &Mail) -> Result<(), Fault> {
    sqlx::query(
        "insert into mail (id, kind, recipient, host, customer_id, address)
         values ($1, $2, $3, $4, $5, $6)",
    )
    .bind(Uuid::now_v7())
    .bind(mail.kind.name())
    .bind(&mail.recipient)
    .bind(&mail.host)
    .bind(mail.customer)
    .bind(mail.address.map(|address| address.to_string()))
    .execute(&mut **tx)
    .await?;
    Ok(())
}

#[derive(sqlx::FromRow)]
struct Row {
    id: Uuid,
    kind: String,
    recipient: String,
    host: String,
    customer: Option<String>,
    address: Option<String>,
    attempts: i32,
    age_in_s: f64,
}

/// Takes the mail that is due first, for as long as it is not tried again: from 30 seconds up to an
/// hour, the longer the more often it was tried.
pub(super) async fn claim(db: impl PgExecutor<'_>) -> Result<Option<Queued>, Fault> {
    let row: Option<Row> = sqlx::query_as(
        "update mail
         set attempts = attempts + 1,
             next_attempt_at = now() + least(interval '1 hour',
                                             interval '30 seconds' * power(2, least(attempts, 8)))
         where id = (select id from mail where next_attempt_at <= now()
                     order by next_attempt_at limit 1 for update skip locked)
         returning id, kind, recipient, host, attempts, address,
                   (select name from customer where customer.id = mail.customer_id) as customer,
                   extract(epoch from now() - created_at)::float8 as age_in_s",
    )
    .fetch_optional(db)
    .await?;
    Ok(row.map(|row| Queued {
        id: row.id,
        kind: if row.kind == Kind::Invitation.name() {
            Kind::Invitation
        } else {
            Kind::PasswordReset
        },
        recipient: row.recipient,
        host: row.host,
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
