//! Accounts in PostgreSQL. They are the one thing that belongs to no customer.

use assay_proto::{Fault, OnConstraint, UserId};
use sqlx::{PgExecutor, PgTransaction};

/// What an account proves itself with.
#[derive(sqlx::FromRow)]
pub(crate) struct Credentials {
    pub(crate) id: UserId,
    /// As its owner spells it.
    pub(crate) email: String,
    /// None while the account has no password yet.
    pub(crate) password_hash: Option<String>,
    /// Grows with every new password.
    pub(crate) password_revision: i64,
}

/// Finds an account by its email, in whatever case that is written.
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

/// The email of an account.
pub(crate) async fn email(db: impl PgExecutor<'_>, id: UserId) -> Result<String, Fault> {
    let email = sqlx::query_scalar("select email from account where id = $1");
    email.bind(id).fetch_optional(db).await?.ok_or(Fault::NotFound("user"))
}

/// Whether the account has a password, so that its owner can log in.
pub(crate) async fn has_password(db: impl PgExecutor<'_>, id: UserId) -> Result<bool, Fault> {
    let has = sqlx::query_scalar("select password_hash is not null from account where id = $1");
    Ok(has.bind(id).fetch_one(db).await?)
}

pub(crate) async fn insert(
    tx: &mut PgTransaction<'_>,
    id: UserId,
    email: &str,
    password_hash: Option<&str>,
) -> Result<(), Fault> {
    sqlx::query("insert into account (id, email, password_hash) values ($1, $2, $3)")
        .bind(id)
        .bind(email)
        .bind(password_hash)
        .execute(&mut **tx)
        .await
        .on_constraint("account_email_key", Fault::AlreadyExists("account"))?;
    Ok(())
}

/// Finds or makes the account with that email, and keeps others from removing it meanwhile. Says
/// whether it has a password.
pub(crate) async fn insert_or_hold(
    tx: &mut PgTransaction<'_>,
    email: &str,
) -> Result<(UserId, bool), Fault> {
    let account = sqlx::query_as(
        "insert into account (id, email) values ($1, $2)
         on conflict (lower(email)) do update set email = account.email
         returning id, password_hash is not null",
    );
    Ok(account.bind(UserId::new()).bind(email).fetch_one(&mut **tx).await?)
}

/// Keeps others from changing the account meanwhile.
pub(crate) async fn lock(tx: &mut PgTransaction<'_>, id: UserId) -> Result<(), Fault> {
    let locked = sqlx::query("select from account where id = $1 for update");
    locked.bind(id).fetch_optional(&mut **tx).await?.map(drop).ok_or(Fault::NotFound("user"))
}

pub(crate) async fn set_email(
    tx: &mut PgTransaction<'_>,
    id: UserId,
    email: &str,
) -> Result<(), Fault> {
    sqlx::query("update account set email = $2 where id = $1")
        .bind(id)
        .bind(email)
        .execute(&mut **tx)
        .await
        .on_constraint("account_email_key", Fault::AlreadyExists("account"))?;
    Ok(())
}

pub(crate) async fn set_password(
    tx: &mut PgTransaction<'_>,
    id: UserId,
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

/// Whether the account still has the password with that revision.
pub(crate) async fn is_unchanged(
    db: impl PgExecutor<'_>,
    id: UserId,
    password_revision: i64,
) -> Result<bool, Fault> {
    let unchanged = sqlx::query_scalar(
        "select exists (select from account where id = $1 and password_revision = $2)",
    );
    Ok(unchanged.bind(id).bind(password_revision).fetch_one(db).await?)
}

/// Replaces the hash of a password by another one of the same password.
pub(crate) async fn replace_hash(
    tx: &mut PgTransaction<'_>,
    id: UserId,
    password_revision: i64,
    hash: &str,
) -> Result<(), Fault> {
    sqlx::query("update account set password_hash = $3 where id = $1 and password_revision = $2")
        .bind(id)
        .bind(password_revision)
        .bind(hash)
        .execute(&mut **tx)
        .await?;
    Ok(())
}

/// Removes the account if it belongs to no customer any more.
pub(crate) async fn delete_if_unused(tx: &mut PgTransaction<'_>, id: UserId) -> Result<(), Fault> {
    sqlx::query(
        "delete from account
         where id = $1 and not exists (select from membership where account_id = $1)",
    )
    .bind(id)
    .execute(&mut **tx)
    .await?;
    Ok(())
}
