//! Usage of customers in PostgreSQL.

use assay_proto::{CustomerId, Fault};
use futures::TryStreamExt;
use sqlx::{AssertSqlSafe, FromRow, PgExecutor, PgPool, PgTransaction};

use super::Kind;

/// The usage of a customer: what its clients have left behind.
#[derive(Clone, Debug, FromRow)]
pub struct Usage {
    pub customer_id: CustomerId,
    /// Sizes in bytes.
    pub staged: i64,
    pub artifacts: i64,
    pub keys: i64,
    /// Executions that have not ended.
    pub open_executions: i64,
}

/// Size of the files of a customer that are to become artifacts, in bytes, as an expression.
const ARRIVING: &str = "coalesce((
    select sum(size) from stray_file where customer_id = $1 and not is_removed
), 0)";

/// Reads what a customer has left behind, in the order of [`Kind::ALL`]. Executions are counted up to a
/// limit.
pub(super) async fn of_customer(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    most: u32,
) -> Result<[i64; Kind::ALL.len()], Fault> {
    let read = sqlx::query_as(AssertSqlSafe(format!(
        "select coalesce(sum(bytes) filter (where kind = 'staged'), 0)::bigint,
                (coalesce(sum(bytes) filter (where kind = 'artifacts'), 0) + {ARRIVING})::bigint,
                coalesce(sum(bytes) filter (where kind = 'keys'), 0)::bigint,
                (select count(*) from (
                     select from execution
                     where customer_id = $1 and status in ('Queued', 'Running') limit $2
                 ) as unfinished)
         from usage where customer_id = $1"
    )));
    let (staged, artifacts, keys, open) =
        read.bind(customer).bind(i64::from(most)).fetch_one(db).await?;
    Ok([staged, artifacts, keys, open])
}

/// Returns the size of the artifacts of a customer, and of files that are to become some, in bytes. Takes turns with
/// other transactions that ask, until this one ends.
pub(super) async fn lock_artifacts(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
) -> Result<i64, Fault> {
    let lock = "select pg_advisory_xact_lock(hashtextextended('assay artifacts ' || $1::text, 0))";
    sqlx::query(lock).bind(customer).execute(&mut **tx).await?;
    // A statement of its own, which sees what the transactions before have claimed.
    let size = sqlx::query_scalar(AssertSqlSafe(format!(
        "select (coalesce(sum(bytes), 0) + {ARRIVING})::bigint
         from usage where customer_id = $1 and kind = 'artifacts'"
    )));
    Ok(size.bind(customer).fetch_one(&mut **tx).await?)
}

/// Adds up the rows of each customer and kind. Only one program does so at a time.
pub(super) async fn add_up(db: &PgPool) -> Result<(), Fault> {
    let mut tx = assay_database::begin(db).await?;
    let lock = "select pg_try_advisory_xact_lock(hashtextextended('assay usage', 0))";
    if !sqlx::query_scalar(lock).fetch_one(&mut *tx).await? {
        return Ok(());
    }
    sqlx::query(
        "with several as (
             select customer_id, kind from usage group by customer_id, kind
             having count(*) > 1 or sum(bytes) = 0
         ), removed as (
             delete from usage u using several s
             where u.customer_id = s.customer_id and u.kind = s.kind
             returning u.*
         )
         insert into usage
         select customer_id, kind, sum(bytes) from removed group by customer_id, kind
         having sum(bytes) <> 0",
    )
    .execute(&mut *tx)
    .await?;
    Ok(tx.commit().await?)
}

/// Sums up all customers: the kind, the sum, and the largest of a customer.
pub(super) async fn totals(db: &PgPool) -> Result<Vec<(String, i64, i64)>, Fault> {
    let totals = sqlx::query_as(
        "select kind, sum(bytes)::bigint, max(bytes)::bigint
         from (
             select kind, sum(bytes) as bytes from usage group by customer_id, kind
             union all
             select 'open_executions', count(*) from execution
             where status in ('Queued', 'Running') group by customer_id
         ) as used
         group by kind",
    );
    Ok(totals.fetch_all(db).await?)
}

/// Calls `show` with what each customer has left behind, those with most bytes first.
pub async fn list(db: &PgPool, mut show: impl FnMut(&Usage)) -> Result<(), Fault> {
    let list = sqlx::query_as(
        "select customer_id,
                coalesce(sum(size) filter (where kind = 'staged'), 0)::bigint as staged,
                coalesce(sum(size) filter (where kind = 'artifacts'), 0)::bigint as artifacts,
                coalesce(sum(size) filter (where kind = 'keys'), 0)::bigint as keys,
                coalesce(sum(size) filter (where kind = 'open'), 0)::bigint as open_executions
         from (
             select customer_id, kind, bytes as size from usage
             union all
             select customer_id, 'open', 1 from execution where status in ('Queued', 'Running')
         ) as used
         group by customer_id
         order by sum(size) desc, customer_id",
    );
    let mut all = list.fetch(db);
    while let Some(usage) = all.try_next().await? {
        show(&usage);
    }
    Ok(())
}

impl std::fmt::Display for Usage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { customer_id, staged, artifacts, keys, open_executions } = self;
        #[expect(clippy::cast_precision_loss, reason = "shown with one digit")]
        let mib = |bytes: i64| bytes as f64 / f64::from(1 << 20);
        let [staged, artifacts, keys] = [*staged, *artifacts, *keys].map(mib);
        write!(
            f,
            "{customer_id}  artifacts {artifacts:.1} MiB, staged {staged:.1} MiB, keys {keys:.1} MiB, \
             open executions {open_executions}"
        )
    }
}
