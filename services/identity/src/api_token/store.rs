//! API tokens in PostgreSQL. Every statement names the customer, except for the lookup of a secret.

use std::time::Duration;

use assay_proto::{
    AccountId, ApiTokenId, CustomerId, Fault, InputColumns, OnConstraint, UserId,
    identity::{ApiToken, ApiTokenInput, NewApiToken},
};
use assay_rpc::list::Slice;
use sqlx::{AssertSqlSafe, PgExecutor, PgTransaction};

/// Maximum number of API tokens of a user that have not expired.
const MOST: i64 = 100;

/// The owner, permissions and remaining lifetime of an API token.
#[derive(sqlx::FromRow)]
pub(crate) struct ValidApiToken {
    pub(crate) customer_id: CustomerId,
    pub(crate) id: ApiTokenId,
    pub(crate) user_id: UserId,
    pub(crate) usage_permission: String,
    remaining_in_s: Option<f64>,
}

impl ValidApiToken {
    /// Returns the remaining lifetime.
    pub(crate) fn remaining(&self) -> Duration {
        self.remaining_in_s.map_or(Duration::MAX, |rest| Duration::from_secs_f64(rest.max(0.0)))
    }
}

/// Finds the API token with a secret, unless it has expired.
pub(crate) async fn find(
    db: impl PgExecutor<'_>,
    hash: &[u8],
) -> Result<Option<ValidApiToken>, Fault> {
    let token = sqlx::query_as(
        "select customer_id, id, user_id, usage_permission,
                extract(epoch from expires_at - now())::float8 as remaining_in_s
         from api_token
         where secret_hash = $1 and (expires_at is null or expires_at > now())",
    );
    Ok(token.bind(hash).fetch_optional(db).await?)
}

/// Returns the remaining lifetime of an API token; zero if it has expired or was deleted.
pub(crate) async fn remaining(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    id: ApiTokenId,
) -> Result<Duration, Fault> {
    let token = sqlx::query_as::<_, ValidApiToken>(
        "select customer_id, id, user_id, usage_permission,
                extract(epoch from expires_at - now())::float8 as remaining_in_s
         from api_token
         where customer_id = $1 and id = $2 and (expires_at is null or expires_at > now())",
    );
    let token = token.bind(customer).bind(id).fetch_optional(&mut **tx).await?;
    Ok(token.map_or(Duration::ZERO, |token| token.remaining()))
}

/// Records the last use of an API token, at most once per minute, unless another transaction has locked it: see
/// [`crate::revocation::date_token`].
pub(crate) async fn record_use(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    id: ApiTokenId,
) -> Result<(), Fault> {
    sqlx::query(
        "update api_token set last_used_at = now()
         where customer_id = $1 and id = (
             select id from api_token
             where customer_id = $1 and id = $2
               and (last_used_at is null or last_used_at < now() - interval '1 minute')
             for no key update skip locked)",
    )
    .bind(customer)
    .bind(id)
    .execute(&mut **tx)
    .await?;
    Ok(())
}

/// Lists a slice of a user's API tokens, newest first.
pub(super) async fn list(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    user: UserId,
    slice: &Slice,
) -> Result<Vec<ApiToken>, Fault> {
    let columns = ApiToken::COLUMNS;
    let tokens = sqlx::query_as(AssertSqlSafe(format!(
        "select {columns} from api_token
         where customer_id = $1 and user_id = $2 and id < $3
           and ($4::text is null or name ilike $4)
         order by id desc
         limit $5"
    )));
    let tokens = tokens.bind(customer).bind(user).bind(slice.before()?).bind(&slice.pattern);
    Ok(tokens.bind(slice.limit).fetch_all(db).await?)
}

/// Adds an API token of a member. The secret is not stored.
pub(super) async fn insert(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    id: ApiTokenId,
    user: UserId,
    token: &ApiTokenInput,
    hash: &[u8],
) -> Result<NewApiToken, Fault> {
    let not_a_member = "only members of the customer can create API tokens".to_owned();
    let (columns, values) = (ApiTokenInput::COLUMNS, ApiTokenInput::values(5));
    let returned = NewApiToken::COLUMNS;
    let insert = sqlx::query_as(AssertSqlSafe(format!(
        "insert into api_token (customer_id, id, user_id, secret_hash, {columns})
         values ($1, $2, $3, $4, {values})
         returning {returned}"
    )));
    let insert = token.bind(insert.bind(customer).bind(id).bind(user).bind(hash));
    let inserted = insert.fetch_one(&mut **tx).await;
    inserted.on_constraint("api_token_membership_fkey", Fault::Forbidden(not_a_member))
}

/// Fails if a user has more API tokens than a user may have. Other creations of the user must wait.
pub(super) async fn check_number(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    user: UserId,
) -> Result<(), Fault> {
    let count = sqlx::query_scalar(
        "select count(*) from api_token
         where customer_id = $1 and user_id = $2 and (expires_at is null or expires_at > now())",
    );
    let count: i64 = count.bind(customer).bind(user).fetch_one(&mut **tx).await?;
    if count <= MOST {
        return Ok(());
    }
    let reason = format!("a user may have {MOST} API tokens that have not expired: delete some");
    Err(Fault::Refused { code: "too_many_api_tokens", reason })
}

pub(super) async fn delete(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    id: ApiTokenId,
    user: UserId,
) -> Result<(), Fault> {
    let done =
        sqlx::query("delete from api_token where customer_id = $1 and id = $2 and user_id = $3")
            .bind(customer)
            .bind(id)
            .bind(user)
            .execute(&mut **tx)
            .await?;
    if done.rows_affected() == 0 { Err(Fault::NotFound("API token")) } else { Ok(()) }
}

/// Deletes all API tokens of a user.
pub(crate) async fn delete_all(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    user: UserId,
) -> Result<(), Fault> {
    sqlx::query("delete from api_token where customer_id = $1 and user_id = $2")
        .bind(customer)
        .bind(user)
        .execute(&mut **tx)
        .await?;
    Ok(())
}

/// Deletes all API tokens of an account, in all of its customers.
pub(crate) async fn delete_of_account(
    tx: &mut PgTransaction<'_>,
    account: AccountId,
) -> Result<(), Fault> {
    sqlx::query(
        "delete from api_token using membership
         where membership.customer_id = api_token.customer_id
           and membership.id = api_token.user_id and membership.account_id = $1",
    )
    .bind(account)
    .execute(&mut **tx)
    .await?;
    Ok(())
}
