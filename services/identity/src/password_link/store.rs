//! Links in PostgreSQL.

use std::time::Duration;

use assay_proto::{AccountId, CustomerId, Fault, UserId};
use sqlx::{PgExecutor, PgTransaction};

/// Maximum number of links of an account or an invitation.
const MAX_LINKS: i64 = 3;

/// The purpose of a link.
#[derive(Clone, Copy)]
pub(super) enum Target {
    /// A new password for an account.
    Account(AccountId),
    /// The invitation of a user.
    Invitation(CustomerId, UserId),
}

impl Target {
    fn account(self) -> Option<AccountId> {
        match self {
            Self::Account(account) => Some(account),
            Self::Invitation(..) => None,
        }
    }

    fn invitation(self) -> Option<(CustomerId, UserId)> {
        match self {
            Self::Account(_) => None,
            Self::Invitation(customer, user) => Some((customer, user)),
        }
    }
}

/// Adds a link. If its target has too many, deletes the oldest one.
pub(super) async fn insert(
    tx: &mut PgTransaction<'_>,
    target: Target,
    hash: &[u8],
    validity: Duration,
) -> Result<(), Fault> {
    let (customer, user) = target.invitation().unzip();
    sqlx::query(
        "insert into password_link (token_hash, account_id, customer_id, user_id, expires_at)
         values ($1, $2, $3, $4, now() + make_interval(secs => $5))",
    )
    .bind(hash)
    .bind(target.account())
    .bind(customer)
    .bind(user)
    .bind(validity.as_secs_f64())
    .execute(&mut **tx)
    .await?;
    sqlx::query(
        "delete from password_link
         where token_hash in (
            select token_hash from password_link
            where account_id = $1 or (customer_id = $2 and user_id = $3)
            order by created_at desc offset $4)",
    )
    .bind(target.account())
    .bind(customer)
    .bind(user)
    .bind(MAX_LINKS)
    .execute(&mut **tx)
    .await?;
    Ok(())
}

/// Returns the email address that a valid link was sent to.
pub(super) async fn email(db: impl PgExecutor<'_>, hash: &[u8]) -> Result<Option<String>, Fault> {
    let email = sqlx::query_scalar(
        "select coalesce(account.email, invitation.email)
         from password_link
         left join account on account.id = password_link.account_id
         left join invitation on invitation.customer_id = password_link.customer_id
                             and invitation.user_id = password_link.user_id
         where password_link.token_hash = $1 and password_link.expires_at > now()",
    );
    Ok(email.bind(hash).fetch_optional(db).await?)
}

/// Consumes a valid link and returns its target. Of several concurrent calls, one succeeds.
pub(super) async fn consume(
    tx: &mut PgTransaction<'_>,
    hash: &[u8],
) -> Result<Option<Target>, Fault> {
    let target: Option<(Option<AccountId>, Option<CustomerId>, Option<UserId>)> = sqlx::query_as(
        "delete from password_link where token_hash = $1 and expires_at > now()
         returning account_id, customer_id, user_id",
    )
    .bind(hash)
    .fetch_optional(&mut **tx)
    .await?;
    Ok(target.and_then(|(account, customer, user)| {
        let invitation = || customer.zip(user).map(|(one, other)| Target::Invitation(one, other));
        account.map(Target::Account).or_else(invitation)
    }))
}

/// Deletes the links of an account.
pub(super) async fn delete_of_account(
    tx: &mut PgTransaction<'_>,
    account: AccountId,
) -> Result<(), Fault> {
    sqlx::query("delete from password_link where account_id = $1")
        .bind(account)
        .execute(&mut **tx)
        .await?;
    Ok(())
}

/// Deletes expired links.
pub(crate) async fn prune(db: impl PgExecutor<'_>) -> Result<(), Fault> {
    sqlx::query("delete from password_link where expires_at < now()").execute(db).await?;
    Ok(())
}
