//! The differences between the usage of customers and what they have stored, and their repair. Usage is a sum of
//! changes, so that an error would stay: until the next upload is refused, or none is any more.

use assay_database::begin;
use assay_proto::Fault;
use sqlx::{AssertSqlSafe, PgPool};

/// The stored sums and the derived ones that differ, of all customers. One snapshot has both.
const PAIRS: &str = "from (
         select customer_id, kind, sum(bytes)::bigint as bytes from usage
         group by customer_id, kind
     ) as stored
     full join (
         select customer_id, kind, sum(bytes)::bigint as bytes
         from (
             select customer_id, 'staged' as kind, octet_length(body)::bigint as bytes
             from launch_request
             union all
             select customer_id, 'artifacts', octet_length(body) from launch_request
             where kind = 'File'
             union all
             select customer_id, 'artifacts', size from artifact
             union all
             select customer_id, 'artifacts', octet_length(content) from live_log_chunk
             union all
             select customer_id, 'keys', octet_length(digest) from upload
             union all
             select customer_id, 'keys',
                    octet_length(idempotency_key) + octet_length(idempotent_request)
             from execution where idempotency_key is not null
         ) as counted
         group by customer_id, kind
     ) as derived using (customer_id, kind)
     where coalesce(stored.bytes, 0) <> coalesce(derived.bytes, 0)";

/// Returns a statement that lists the differences between the stored sums and the derived ones, as the columns
/// `noun`, `id`, `field`, `stored` and `derived`.
pub(crate) fn differences() -> String {
    format!(
        "select 'customer' as noun, customer_id::text as id,
                'usage of ' || kind || ' in bytes' as field,
                coalesce(stored.bytes, 0)::text as stored,
                coalesce(derived.bytes, 0)::text as derived
         {PAIRS}
         order by customer_id, kind"
    )
}

/// Adds the differences to the sums. Returns their number.
///
/// A change that is committed meanwhile adds a row of its own. Another repair waits, so that each difference is added
/// once.
pub(crate) async fn repair(db: &PgPool) -> Result<u64, Fault> {
    let mut tx = begin(db).await?;
    let lock = "select pg_advisory_xact_lock(hashtextextended('assay usage', 0))";
    sqlx::query(lock).execute(&mut *tx).await?;
    let repair = sqlx::query(AssertSqlSafe(format!(
        "insert into usage (customer_id, kind, bytes)
         select customer_id, kind, coalesce(derived.bytes, 0) - coalesce(stored.bytes, 0)
         {PAIRS}"
    )));
    let repaired = repair.execute(&mut *tx).await?.rows_affected();
    tx.commit().await?;
    Ok(repaired)
}
