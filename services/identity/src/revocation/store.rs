//! Revocations in PostgreSQL.

use assay_auth::LONGEST_EXCHANGED_LIFETIME;
use assay_proto::{
    AccountId, ApiTokenId, CustomerId, Fault, SessionId, Timestamp, UserGroupId, UserId,
    identity::Revocation,
};
use jsonwebtoken::get_current_timestamp;
use sqlx::{AssertSqlSafe, PgExecutor, PgTransaction};

/// Number of revocations in a batch.
const BATCH: i64 = 1000;

/// Number of slots for times of issue. Connections rarely share one, so that logins do not wait for
/// each other.
const SLOTS: i32 = 256;

/// The tokens that a revocation affects: those that match all given ids.
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

    /// All tokens of a user, including those for other customers.
    pub(crate) fn of_user(user: UserId) -> Self {
        Self { user: Some(user), ..Self::default() }
    }

    pub(crate) fn of_api_token(customer: CustomerId, user: UserId, token: ApiTokenId) -> Self {
        Self { customer: Some(customer), user: Some(user), api_token: Some(token) }
    }
}

/// Blocks revocations until the transaction ends, and returns the current time by the clock of
/// revocations.
///
/// A token must contain data that is read after this call, and have the returned time of issue.
/// Then every revocation either was committed before, and the token reflects the change that caused
/// it; or it has a later time, and revokes the token.
///
/// After this call, no statement may wait for a row: a transaction that has locked the row may wait until this one ends,
/// in order to revoke tokens. So rows are only read, or written with `skip locked`.
///
/// The clock of the database may step back, for instance after a failover. So the time is later than
/// all revocations, and is kept for those that follow.
pub(crate) async fn date_token(tx: &mut PgTransaction<'_>) -> Result<Timestamp, Fault> {
    block_revocations(tx).await?;
    let date = sqlx::query_scalar(
        "insert into revocation_clock as clock (slot, latest)
         select 1 + pg_backend_pid() % $1, greatest(clock_timestamp(),
             (select latest + interval '1 microsecond' from revocation_clock where slot = 0))
         on conflict on constraint revocation_clock_pkey do update
         set latest = greatest(clock.latest, excluded.latest)
         returning latest",
    );
    Ok(date.bind(SLOTS).fetch_one(&mut **tx).await?)
}

/// Waits for transactions that issue tokens, blocks them until the transaction ends, and returns the
/// current time by the clock of revocations, in microseconds since 1970. It is not earlier than the
/// time of issue of any token.
async fn date_revocation(tx: &mut PgTransaction<'_>) -> Result<i64, Fault> {
    lock_revocations(tx).await?;
    let date = sqlx::query_scalar(
        "insert into revocation_clock (slot, latest)
         select 0, greatest(clock_timestamp(), max(latest)) from revocation_clock
         on conflict on constraint revocation_clock_pkey do update set latest = excluded.latest
         returning (extract(epoch from latest) * 1000000)::bigint",
    );
    Ok(date.fetch_one(&mut **tx).await?)
}

/// Waits for revocations, and blocks further ones until the transaction ends.
pub(super) async fn block_revocations(tx: &mut PgTransaction<'_>) -> Result<(), Fault> {
    sqlx::query("select pg_advisory_xact_lock_shared(hashtextextended('assay revocation', 0))")
        .execute(&mut **tx)
        .await?;
    Ok(())
}

/// Revokes all tokens of a scope that were issued until now. It must come last in a transaction,
/// because it blocks the issue of tokens until the end. Only the deletion of API tokens follows, so
/// that it includes those of transactions that this one has waited for.
pub(crate) async fn record(tx: &mut PgTransaction<'_>, scope: Scope) -> Result<(), Fault> {
    let issued_until = date_revocation(tx).await?;
    sqlx::query(
        "insert into revocation (customer_id, user_id, api_token_id, issued_until)
         values ($1, $2, $3, $4)",
    )
    .bind(scope.customer)
    .bind(scope.user)
    .bind(scope.api_token)
    .bind(issued_until)
    .execute(&mut **tx)
    .await?;
    Ok(())
}

/// Like [`record`], for the members of a user group.
pub(crate) async fn record_of_group(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    group: UserGroupId,
) -> Result<(), Fault> {
    let issued_until = date_revocation(tx).await?;
    sqlx::query(
        "insert into revocation (user_id, issued_until)
         select id, $3 from membership where customer_id = $1 and user_group_id = $2",
    )
    .bind(customer)
    .bind(group)
    .bind(issued_until)
    .execute(&mut **tx)
    .await?;
    Ok(())
}

/// Like [`record`], for all tokens for a customer, and those of its members for other customers.
pub(crate) async fn record_of_customer(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
) -> Result<(), Fault> {
    record(tx, Scope::of_customer(customer)).await?;
    let issued_until = date_revocation(tx).await?;
    sqlx::query(
        "insert into revocation (user_id, issued_until)
         select membership.id, $2
         from membership
         join user_group on user_group.customer_id = membership.customer_id
                        and user_group.id = membership.user_group_id
         where membership.customer_id = $1
           and string_to_array(user_group.usage_permission, ', ') @> array['CustomerManagement']",
    )
    .bind(customer)
    .bind(issued_until)
    .execute(&mut **tx)
    .await?;
    Ok(())
}

/// Like [`record`], for an account in all of its customers.
pub(crate) async fn record_of_account(
    tx: &mut PgTransaction<'_>,
    account: AccountId,
) -> Result<(), Fault> {
    let issued_until = date_revocation(tx).await?;
    sqlx::query(
        "insert into revocation (user_id, issued_until)
         select id, $2 from membership where account_id = $1",
    )
    .bind(account)
    .bind(issued_until)
    .execute(&mut **tx)
    .await?;
    Ok(())
}

/// Like [`record`], for a session of a user, in all customers of the account.
pub(crate) async fn record_of_session(
    tx: &mut PgTransaction<'_>,
    user: UserId,
    session: SessionId,
) -> Result<(), Fault> {
    let issued_until = date_revocation(tx).await?;
    sqlx::query(
        "insert into revocation (user_id, session_id, issued_until)
         select id, $2, $3
         from membership
         where account_id = (select account_id from membership where id = $1)",
    )
    .bind(user)
    .bind(session)
    .bind(issued_until)
    .execute(&mut **tx)
    .await?;
    Ok(())
}

/// Changes the name in tokens of a user that were issued until now. Like [`record`], it must come
/// last in a transaction.
pub(crate) async fn record_name(
    tx: &mut PgTransaction<'_>,
    user: UserId,
    name: &str,
) -> Result<(), Fault> {
    let issued_until = date_revocation(tx).await?;
    sqlx::query("insert into revocation (user_id, display_name, issued_until) values ($1, $2, $3)")
        .bind(user)
        .bind(name)
        .bind(issued_until)
        .execute(&mut **tx)
        .await?;
    Ok(())
}

/// Waits for transactions that issue tokens, and for other revocations, so that sequence numbers
/// become visible in order and readers miss none.
pub(super) async fn lock_revocations(tx: &mut PgTransaction<'_>) -> Result<(), Fault> {
    sqlx::query("select pg_advisory_xact_lock(hashtextextended('assay revocation', 0))")
        .execute(&mut **tx)
        .await?;
    Ok(())
}

/// Lists the next batch of revocations after a sequence number, oldest first.
pub(crate) async fn list(db: impl PgExecutor<'_>, after: i64) -> Result<Vec<Revocation>, Fault> {
    let columns = Revocation::COLUMNS;
    let revocations = sqlx::query_as(AssertSqlSafe(format!(
        "select {columns} from revocation where sequence > $1 order by sequence limit $2"
    )));
    Ok(revocations.bind(after).bind(BATCH).fetch_all(db).await?)
}

/// The earlier of the times of the database and the program, less one hour for clock skew. `$1` is [`program_time`].
const PRESENT: &str = "least(now(), to_timestamp($1::bigint)) - interval '1 hour'";

/// The longest lifetime of tokens, in a query of `signing_key`; null without a key.
const LONGEST: &str = "make_interval(secs => max(token_lifetime_in_s))";

/// Returns the time until which issued tokens have expired, in microseconds since 1970; 0 if it is not known.
pub(crate) async fn expired_until(db: impl PgExecutor<'_>) -> Result<i64, Fault> {
    let until = sqlx::query_scalar(AssertSqlSafe(format!(
        "select (extract(epoch from {PRESENT} - {LONGEST}) * 1000000)::bigint from signing_key"
    )));
    let until: Option<i64> = until.bind(program_time()?).fetch_one(db).await?;
    Ok(until.unwrap_or_default())
}

/// Deletes revocations whose tokens have all expired.
pub(crate) async fn prune(db: impl PgExecutor<'_>) -> Result<(), Fault> {
    let prune = sqlx::query(AssertSqlSafe(format!(
        "delete from revocation
         where created_at < (select {PRESENT} - {LONGEST} from signing_key)
            or (api_token_id is not null and created_at < {PRESENT} - make_interval(secs => $2))"
    )));
    let of_api_token = LONGEST_EXCHANGED_LIFETIME.as_secs_f64();
    prune.bind(program_time()?).bind(of_api_token).execute(db).await?;
    Ok(())
}

/// Returns the time by the clock of this program, in seconds since 1970. Tokens expire by the clocks of programs, so a
/// clock of the database that is ahead must not end revocations before their tokens.
fn program_time() -> Result<i64, Fault> {
    i64::try_from(get_current_timestamp()).map_err(Fault::internal)
}
