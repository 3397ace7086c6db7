//! Share links in PostgreSQL. Every statement is bound to one customer, except for the lookup of a
//! secret.

use assay_auth::Caller;
use assay_proto::{
    CustomerId, ExecutionId, Fault, ShareLinkId, Timestamp,
    execution::{NewShareLink, ShareLink},
};
use assay_rpc::list::Slice;
use sqlx::{AssertSqlSafe, FromRow, PgExecutor, PgTransaction};

use super::rules::{DEFAULT, LONGEST, MOST};

/// The execution that a share link grants access to.
#[derive(Clone, Copy, FromRow)]
pub(super) struct Shared {
    pub(super) id: ShareLinkId,
    pub(super) customer_id: CustomerId,
    pub(super) execution_id: ExecutionId,
    pub(super) expires_at: Timestamp,
}

/// Finds the execution of a secret, unless its share link has expired or the customer is archived.
pub(super) async fn find(db: impl PgExecutor<'_>, hash: &[u8]) -> Result<Shared, Fault> {
    let shared = sqlx::query_as(
        "select id, customer_id, execution_id, expires_at from live_share_link
         where token_hash = $1",
    );
    let shared = shared.bind(hash).fetch_optional(db).await?;
    shared.ok_or(Fault::NotFound("share link"))
}

/// Returns the default and the latest time when a new share link expires.
pub(super) async fn ends(db: impl PgExecutor<'_>) -> Result<(Timestamp, Timestamp), Fault> {
    let ends = sqlx::query_as(
        "select now() + make_interval(days => $1), now() + make_interval(days => $2)",
    );
    Ok(ends.bind(DEFAULT).bind(LONGEST).fetch_one(db).await?)
}

/// Lists the share links of an execution that have not expired, newest first.
pub(super) async fn list(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    execution: ExecutionId,
    slice: &Slice,
) -> Result<Vec<ShareLink>, Fault> {
    let columns = ShareLink::COLUMNS;
    let links = sqlx::query_as(AssertSqlSafe(format!(
        "select {columns} from share_link
         where customer_id = $1 and execution_id = $2 and id < $3 and expires_at > now()
           and ($4::text is null or created_by ilike $4)
         order by id desc
         limit $5"
    )));
    let links = links.bind(customer).bind(execution).bind(slice.before()?);
    Ok(links.bind(slice.pattern.as_deref()).bind(slice.limit).fetch_all(db).await?)
}

/// Adds a share link, and removes those of the execution that have expired.
pub(super) async fn insert(
    tx: &mut PgTransaction<'_>,
    caller: &Caller,
    execution: ExecutionId,
    hash: &[u8],
    expires_at: Timestamp,
) -> Result<NewShareLink, Fault> {
    sqlx::query(
        "delete from share_link where customer_id = $1 and execution_id = $2 and expires_at <= now()",
    )
    .bind(caller.customer)
    .bind(execution)
    .execute(&mut **tx)
    .await?;
    let columns = NewShareLink::COLUMNS;
    let link = sqlx::query_as(AssertSqlSafe(format!(
        "insert into share_link (customer_id, id, execution_id, token_hash, expires_at, created_by_id,
             created_by)
         values ($1, $2, $3, $4, $5, $6, $7)
         returning {columns}"
    )));
    let link = link.bind(caller.customer).bind(ShareLinkId::new()).bind(execution).bind(hash);
    let link = link.bind(expires_at).bind(caller.user).bind(&*caller.name);
    Ok(link.fetch_one(&mut **tx).await?)
}

/// Fails if an execution has more share links than it may have.
pub(super) async fn check_number(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    execution: ExecutionId,
) -> Result<(), Fault> {
    let count = sqlx::query_scalar(
        "select count(*) from share_link where customer_id = $1 and execution_id = $2",
    );
    let count: i64 = count.bind(customer).bind(execution).fetch_one(&mut **tx).await?;
    if count <= MOST {
        return Ok(());
    }
    let reason = format!("an execution may have {MOST} share links: delete one first");
    Err(Fault::Refused { code: "too_many_share_links", reason })
}

pub(super) async fn delete(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    execution: ExecutionId,
    id: ShareLinkId,
) -> Result<(), Fault> {
    let delete = sqlx::query(
        "delete from share_link where customer_id = $1 and execution_id = $2 and id = $3",
    );
    let done = delete.bind(customer).bind(execution).bind(id).execute(db).await?;
    if done.rows_affected() == 0 { Err(Fault::NotFound("share link")) } else { Ok(()) }
}
