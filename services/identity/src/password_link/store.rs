//! Links in PostgreSQL.

use std::time::Duration;

use assay_proto::{Fault, UserId};
use sqlx::{PgExecutor, PgTransaction};

/// Keeps the link of an account, instead of the one before.
pub(super) async fn put(
    tx: &mut PgTransaction<'_>,
    account: UserId,
    hash: &[u8],
    validity: Duration,
) -> Result<(), Fault> {
    sqlx::query(
        "insert into password_link (account_id, token_hash, expires_at)
         values ($1, $2, now() + make_interval(secs => $3))
         on conflict (account_id) do update
         set token_hash = excluded.token_hash, expires_at = excluded.expires_at",
    )
    .bind(account)
    .bind(hash)
    .bind(validity.as_secs_f64())
    .execute(&mut **tx)
    .await?;
    Ok(())
}

/// The account, and its email, that a valid link belongs to.
pub(super) async fn find(
    db: impl PgExecutor<'_>,
    hash: &[u8],
) -> Result<Option<(UserId, String)>, Fault> {
    let account = sqlx::query_as(
        "select account.id, account.email
         from password_link join account on account.id = password_link.account_id
         where password_link.token_hash = $1 and password_link.expires_at > now()",
    );
    Ok(account.bind(hash).fetch_optional(db).await?)
}

/// Uses a valid link up. Of several who try, one finds its account.
pub(super) async fn take(tx: &mut PgTransaction<'_>, hash: &[u8]) -> Result<Option<UserId>, Fault> {
    let account = sqlx::query_scalar(
        "delete from password_link where token_hash = $1 and expires_at > now()
         returning account_id",
    );
    Ok(account.bind(hash).fetch_optional(&mut **tx).await?)
}

/// Voids the link of an account.
pub(crate) async fn forget(tx: &mut PgTransaction<'_>, account: UserId) -> Result<(), Fault> {
    sqlx::query("delete from password_link where account_id = $1")
        .bind(account)
        .execute(&mut **tx)
        .await?;
    Ok(())
}

/// Removes the links that are too old.
pub(crate) async fn prune(db: impl PgExecutor<'_>) -> Result<(), Fault> {
    sqlx::query("delete from password_link where expires_at < now()").execute(db).await?;
    Ok(())
}
