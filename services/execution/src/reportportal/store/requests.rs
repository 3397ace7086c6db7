//! The requests of launches in PostgreSQL. Every statement is bound to one customer.

use assay_proto::{CustomerId, ExecutionId, Fault, LaunchId};
use sqlx::{FromRow, PgExecutor, PgPool};
use uuid::Uuid;

use super::StoredLaunch;

/// Number of requests that are read or deleted at a time.
const REQUESTS: i64 = 2000;

/// Size of the requests that are read at a time, in bytes. The last one may exceed it.
pub(in crate::reportportal) const PAGE: usize = 8 << 20;

/// A request that is staged.
#[derive(FromRow)]
pub(in crate::reportportal) struct Staged {
    pub(in crate::reportportal) sequence: i64,
    pub(in crate::reportportal) kind: String,
    pub(in crate::reportportal) item_id: Option<Uuid>,
    pub(in crate::reportportal) parent_id: Option<Uuid>,
    pub(in crate::reportportal) body: Vec<u8>,
}

/// A file that is staged.
#[derive(FromRow)]
pub(in crate::reportportal) struct StagedFile {
    pub(in crate::reportportal) sequence: i64,
    pub(in crate::reportportal) body: Vec<u8>,
    pub(in crate::reportportal) file_name: String,
    pub(in crate::reportportal) content_type: String,
}

/// Reads requests of a launch after one of them, without files: as many as fit into the memory of a
/// page, at least one.
pub(in crate::reportportal) async fn requests(
    db: impl PgExecutor<'_>,
    launch: &StoredLaunch,
    after: i64,
    with_logs: bool,
) -> Result<Vec<Staged>, Fault> {
    let requests = sqlx::query_as(
        "select sequence, kind, item_id, parent_id, body from (
             select page.*,
                 sum(octet_length(body)) over (order by sequence) - octet_length(body) as before
             from (
                 select sequence, kind, item_id, parent_id, body from launch_request
                 where customer_id = $1 and launch_id = $2 and sequence > $3
                   and kind <> 'File' and ($4 or kind <> 'Log')
                 order by sequence limit $5
             ) as page
         ) as page
         where before < $6
         order by sequence",
    );
    Ok(requests
        .bind(launch.customer)
        .bind(launch.id)
        .bind(after)
        .bind(with_logs)
        .bind(REQUESTS)
        .bind(i64::try_from(PAGE).map_err(Fault::internal)?)
        .fetch_all(db)
        .await?)
}

/// Reads the first file of a launch that is not an artifact of its execution yet.
pub(in crate::reportportal) async fn next_file(
    db: impl PgExecutor<'_>,
    launch: &StoredLaunch,
    execution: ExecutionId,
    after: i64,
) -> Result<Option<StagedFile>, Fault> {
    let file = sqlx::query_as(
        "select sequence, body, file_name, content_type from launch_request r
         where customer_id = $1 and launch_id = $2 and kind = 'File' and sequence > $4
           and not exists (
               select from artifact a
               where a.customer_id = $1 and a.owner_id = $3 and a.name = r.file_name
           )
         order by sequence limit 1",
    );
    Ok(file
        .bind(launch.customer)
        .bind(launch.id)
        .bind(execution)
        .bind(after)
        .fetch_optional(db)
        .await?)
}

/// Deletes the requests of a launch up to one of them, in short statements.
pub(super) async fn delete_requests(
    db: &PgPool,
    customer: CustomerId,
    id: LaunchId,
    last_sequence: i64,
) -> Result<(), Fault> {
    loop {
        let delete = sqlx::query(
            "delete from launch_request
             where customer_id = $1 and launch_id = $2 and sequence = any(array(
                 select sequence from launch_request
                 where customer_id = $1 and launch_id = $2 and sequence <= $3
                 order by sequence limit $4
             ))",
        );
        let delete = delete.bind(customer).bind(id).bind(last_sequence).bind(REQUESTS);
        if delete.execute(db).await?.rows_affected() == 0 {
            return Ok(());
        }
    }
}
