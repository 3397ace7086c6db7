//! Revocations in PostgreSQL.

use assay_proto::{
    ApiTokenId, CustomerId, Fault, Timestamp, UserGroupId, UserId, identity::Revocation,
};
use sqlx::{PgExecutor, PgTransaction};

/// How many are read at once.
const PART: i64 = 1000;

/// Which tokens die: those that match all ids given.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Scope {
    pub(crate) customer: Option<CustomerId>,
    pub(crate) user: Option<UserId>,
    pub(crate) api_token: Option<ApiTokenId>,
}

impl Scope {
    pub(crate) fn of_customer(customer: CustomerId) -> Self {
        Self { customer: Some(customer), ..Self::default() }
    }

    /// All tokens of an account, whatever the customer.
    pub(crate) fn of_account(user: UserId) -> Self {
        Self { user: Some(user), ..Self::default() }
    }

    pub(crate) fn of_api_token(customer: CustomerId, user: UserId, token: ApiTokenId) -> Self {
        Self { customer: Some(customer), user: Some(user), api_token: Some(token) }
    }
}

/// Keeps tokens from being revoked until the end of the transaction, and says what time it is by
/// the clock that revocations are dated with.
///
/// A token has to be made from what is read after this, and dated with this. Then every revocation
/// either was committed before, and the token tells of what it was for; or it is dated later, and
/// the token dies.
pub(crate) async fn date_token(tx: &mut PgTransaction<'_>) -> Result<Timestamp, Fault> {
    sqlx::query("select pg_advisory_xact_lock_shared(hashtextextended('assay revocation', 0))")
        .execute(&mut **tx)
        .await?;
    Ok(sqlx::query_scalar("select clock_timestamp()").fetch_one(&mut **tx).await?)
}

/// Kills all tokens of that scope issued so far. It has to come last in a transaction, since those
/// who make tokens wait for its end.
pub(crate) async fn record(tx: &mut PgTransaction<'_>, scope: Scope) -> Result<(), Fault> {
    queue_up(tx).await?;
    sqlx::query(
        "insert into revocation (customer_id, user_id, api_token_id, issued_until)
         values ($1, $2, $3, extract(epoch from clock_timestamp()) * 1000000)",
    )
    .bind(scope.customer)
    .bind(scope.user)
    .bind(scope.api_token)
    .execute(&mut **tx)
    .await?;
    Ok(())
}

/// As [`record`], for the members of a group: in all customers if the group could manage those.
pub(crate) async fn record_of_group(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    group: UserGroupId,
    everywhere: bool,
) -> Result<(), Fault> {
    queue_up(tx).await?;
    sqlx::query(
        "insert into revocation (customer_id, user_id, issued_until)
         select case when $3 then null else customer_id end, account_id,
                extract(epoch from clock_timestamp()) * 1000000
         from membership where customer_id = $1 and user_group_id = $2",
    )
    .bind(customer)
    .bind(group)
    .bind(everywhere)
    .execute(&mut **tx)
    .await?;
    Ok(())
}

/// Waits for those who make tokens; and for other writers, so that sequences become visible in
/// their order: who has read up to one has missed none before it.
async fn queue_up(tx: &mut PgTransaction<'_>) -> Result<(), Fault> {
    sqlx::query("select pg_advisory_xact_lock(hashtextextended('assay revocation', 0))")
        .execute(&mut **tx)
        .await?;
    Ok(())
}

/// Lists the next part of the revocations after one, oldest first.
pub(crate) async fn list(db: impl PgExecutor<'_>, after: i64) -> Result<Vec<Revocation>, Fault> {
    let revocations = sqlx::query_as(
        "select sequence, customer_id, user_id, api_token_id, issued_until
         from revocation where sequence > $1 order by sequence limit $2",
    );
    Ok(revocations.bind(after).bind(PART).fetch_all(db).await?)
}

/// Removes those whose tokens have all expired.
pub(crate) async fn prune(db: impl PgExecutor<'_>) -> Result<(), Fault> {
    sqlx::query(
        "delete from revocation
         where created_at < now() - interval '1 hour' - make_interval(
            secs => (select max(token_lifetime_in_s) from signing_key))",
    )
    .execute(db)
    .await?;
    Ok(())
}
