//! Accounts in PostgreSQL. They do not belong to a customer.

use assay_proto::{AccountId, Fault, OnConstraint, UserId};
use sqlx::{PgExecutor, PgTransaction};

/// The credentials of an account.
#[derive(sqlx::FromRow)]
pub(crate) struct Credentials {
    pub(crate) id: AccountId,
    /// The email address as its owner spells it.
    pub(crate) email: String,
    pub(crate) password_hash: String,
    /// Incremented with every new password.
    pub(crate) password_revision: i64,
}

/// Finds an account by its email address, ignoring case.
pub(crate) async fn find(
    db: impl PgExecutor<'_>,
    email: &str,
) -> Result<Option<Credentials>, Fault> {
    let account = sqlx::query_as(
        "select id, email, password_hash, password_revision from account
         where lower(email) = lower($1)",
    );
    Ok(account.bind(email).fetch_optional(db).await?)
}

/// Returns the account of a user of any customer, and its email address.
pub(crate) async fn of_user(
    db: impl PgExecutor<'_>,
    user: UserId,
) -> Result<(AccountId, String), Fault> {
    let account = sqlx::query_as(
        "select account.id, account.email
         from membership join account on account.id = membership.account_id
         where membership.id = $1",
    );
    account.bind(user).fetch_optional(db).await?.ok_or(Fault::NotFound("user"))
}

pub(crate) async fn insert(
    tx: &mut PgTransaction<'_>,
    id: AccountId,
    email: &str,
    password_hash: &str,
) -> Result<(), Fault> {
    sqlx::query("insert into account (id, email, password_hash) values ($1, $2, $3)")
        .bind(id)
        .bind(email)
        .bind(password_hash)
        .execute(&mut **tx)
        .await
        .on_constraint(
            "account_email_key",
            Fault::AlreadyExists("account with this email address"),
        )?;
    Ok(())
}

/// Finds an account by its email address, and prevents its deletion until the transaction ends.
pub(crate) async fn lock_shared(
    tx: &mut PgTransaction<'_>,
    email: &str,
) -> Result<Option<AccountId>, Fault> {
    let account =
        sqlx::query_scalar("select id from account where lower(email) = lower($1) for key share");
    Ok(account.bind(email).fetch_optional(&mut **tx).await?)
}

/// Locks an account until the transaction ends.
pub(crate) async fn lock(tx: &mut PgTransaction<'_>, id: AccountId) -> Result<(), Fault> {
    let account = sqlx::query("select from account where id = $1 for update");
    account.bind(id).fetch_optional(&mut **tx).await?.map(drop).ok_or(Fault::NotFound("user"))
}

pub(crate) async fn set_password(
    tx: &mut PgTransaction<'_>,
    id: AccountId,
    hash: &str,
) -> Result<(), Fault> {
    sqlx::query(
        "update account set password_hash = $2, password_revision = password_revision + 1
         where id = $1",
    )
    .bind(id)
    .bind(hash)
    .execute(&mut **tx)
    .await?;
    Ok(())
}

/// Returns whether the account still has the password with a revision.
pub(crate) async fn is_unchanged(
    db: impl PgExecutor<'_>,
    id: AccountId,
    password_revision: i64,
) -> Result<bool, Fault> {
    let unchanged = sqlx::query_scalar(
        "select exists (select from account where id = $1 and password_revision = $2)",
    );
    Ok(unchanged.bind(id).bind(password_revision).fetch_one(db).await?)
}

/// Replaces the hash of an unchanged password, unless another transaction has locked the account: see
/// [`crate::revocation::date_token`]. Then a later login does so.
pub(crate) async fn replace_hash(
    tx: &mut PgTransaction<'_>,
    id: AccountId,
    password_revision: i64,
    hash: &str,
) -> Result<(), Fault> {
    sqlx::query(
        "update account set password_hash = $3
         where id = (
             select id from account where id = $1 and password_revision = $2
             for no key update skip locked)",
    )
    .bind(id)
    .bind(password_revision)
    .bind(hash)
    .execute(&mut **tx)
    .await?;
    Ok(())
}

/// Deletes the account if it has no memberships.
pub(crate) async fn delete_if_unused(
    tx: &mut PgTransaction<'_>,
    id: AccountId,
) -> Result<(), Fault> {
    sqlx::query(
        "delete from account
         where id = $1 and not exists (select from membership where account_id = $1)",
    )
    .bind(id)
    .execute(&mut **tx)
    .await?;
    Ok(())
}
