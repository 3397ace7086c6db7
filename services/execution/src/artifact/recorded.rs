//! The files that this service has records of, for all customers.

use assay_proto::Fault;
use assay_storage::Found;
use sqlx::PgExecutor;

/// Returns those of some files that are neither artifacts nor being stored or removed.
pub async fn unrecorded(db: impl PgExecutor<'_>, files: Vec<Found>) -> Result<Vec<Found>, Fault> {
    let (customers, ids) = Found::keys(&files);
    // One statement, since a file moves from one table to the other.
    let recorded = sqlx::query_scalar(
        "with wanted as (
             select * from unnest($1::uuid[], $2::uuid[]) as wanted (customer_id, id)
         )
         select id from artifact where (customer_id, id) in (select * from wanted)
         union all
         select artifact_id from stray_file
         where (customer_id, artifact_id) in (select * from wanted)",
    );
    Ok(Found::without(files, recorded.bind(customers).bind(ids).fetch_all(db).await?))
}
