//! Accounts in PostgreSQL. They are the one thing that belongs to no customer.

use assay_proto::{Fault, OnConstraint, UserId};
use sqlx::{PgExecutor, PgTransaction};

/// What an account proves itself with.
#[derive(sqlx::FromRow)]
pub(crate) struct Credentials {
    pub(crate) id: UserId,
    /// None while the account has no password yet.
    pub(crate) password_hash: Option<String>,
}

/// Finds an account by its email, in whatever case that is written.
pub(crate) async fn find(
    db: impl PgExecutor<'_>,
    email: &str,
) -> Result<Option<Credentials>, Fault> {
    let account =
        sqlx::query_as("select id, password_hash from account where lower(email) = lower($1)")
            .bind(email)
            .fetch_optional(db)
            .await?;
    Ok(account)
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
