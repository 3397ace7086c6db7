//! Launches and their requests in PostgreSQL. Every statement of a request is bound to one customer.

use assay_proto::{CustomerId, ExecutionId, Fault, LaunchId, ProjectId};
use assay_runtime::begin;
use sqlx::{FromRow, PgExecutor, PgPool, PgTransaction};
use uuid::Uuid;

use super::{OfProject, body::Entry, body::number, staging::launches};
use crate::column::column;

/// Seconds from the last request of a launch until its results are stored: of one that has finished,
/// that is not finished, and that has not started.
const GRACE: f64 = 5.0;
const IDLE: f64 = 2.0 * 3600.0;
const UNKNOWN: f64 = 24.0 * 3600.0;

/// Number of requests that are read or deleted at a time.
const REQUESTS: i64 = 2000;

/// A launch.
#[derive(Debug)]
pub(super) struct StoredLaunch {
    pub(super) customer: CustomerId,
    pub(super) id: LaunchId,
    pub(super) execution: Option<OfProject>,
    pub(super) agent: String,
    pub(super) finished: bool,
    pub(super) ended: bool,
    /// The last request whose results are stored.
    pub(super) last_sequence: i64,
}

#[derive(FromRow)]
struct Row {
    customer_id: CustomerId,
    id: LaunchId,
    project_id: Option<ProjectId>,
    execution_id: Option<ExecutionId>,
    agent: String,
    finished: bool,
    ended: bool,
    last_sequence: i64,
}

impl From<Row> for StoredLaunch {
    fn from(row: Row) -> Self {
        Self {
            customer: row.customer_id,
            id: row.id,
            execution: row.project_id.zip(row.execution_id),
            agent: row.agent,
            finished: row.finished,
            ended: row.ended,
            last_sequence: row.last_sequence,
        }
    }
}

/// A request that is staged.
#[derive(FromRow)]
pub(super) struct Staged {
    pub(super) sequence: i64,
    pub(super) kind: String,
    pub(super) item_id: Option<Uuid>,
    pub(super) parent_id: Option<Uuid>,
    pub(super) body: Vec<u8>,
}

/// A file that is staged.
#[derive(FromRow)]
pub(super) struct StagedFile {
    pub(super) sequence: i64,
    pub(super) body: Vec<u8>,
    pub(super) file_name: String,
    pub(super) content_type: String,
}

/// Stores requests, except items that start in a launch that has ended. Returns the launches that
/// have.
///
/// The row of the launch is locked before its requests are numbered, so those of one launch are
/// committed in the order of their numbers.
pub(super) async fn stage(
    db: &PgPool,
    customer: CustomerId,
    entries: &[Entry],
) -> Result<Vec<LaunchId>, Fault> {
    let (ids, numbers) = launches(entries);
    let file = |entry: &Entry| entry.file.as_ref().map(|file| file.name.clone());
    let content_type = |entry: &Entry| entry.file.as_ref().map(|file| file.content_type.clone());
    let stage = sqlx::query_scalar(
        "with touched as (
             insert into launch as l (customer_id, id, number, due_at)
             select $1, id, number, now() + make_interval(secs => $4)
             from unnest($2::uuid[], $3::bigint[]) as touched (id, number)
             on conflict on constraint launch_pkey do update
             set due_at = now() + make_interval(secs => case
                 when l.finished_at is not null or l.ended_at is not null then $5
                 when l.execution_id is not null then $6
                 else $4 end)
             returning l.id, l.ended_at is not null as has_ended
         ), stored as (
             insert into launch_request (customer_id, launch_id, kind, item_id, parent_id, body,
                 file_name, content_type)
             select $1, launch_id, kind, item_id, parent_id, body, file_name, content_type
             from unnest($7::uuid[], $8::text[], $9::uuid[], $10::uuid[], $11::bytea[],
                     $12::text[], $13::text[])
                 with ordinality as entry (launch_id, kind, item_id, parent_id, body, file_name,
                     content_type, position)
             join touched on touched.id = launch_id
             where kind <> 'Start' or not has_ended
             order by position
         )
         select id from touched where has_ended",
    );
    let ended = stage
        .bind(customer)
        .bind(ids)
        .bind(numbers)
        .bind(UNKNOWN)
        .bind(GRACE)
        .bind(IDLE)
        .bind(column(entries, |entry| entry.launch))
        .bind(column(entries, |entry| entry.kind.name()))
        .bind(column(entries, |entry| entry.item))
        .bind(column(entries, |entry| entry.parent))
        .bind(column(entries, |entry| &entry.body[..]))
        .bind(column(entries, file))
        .bind(column(entries, content_type))
        .fetch_all(db)
        .await?;
    Ok(ended)
}

/// Finds a launch.
pub(super) async fn find(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    id: LaunchId,
) -> Result<Option<StoredLaunch>, Fault> {
    let found: Option<Row> = sqlx::query_as(
        "select customer_id, id, project_id, execution_id, agent, finished_at is not null as finished,
                ended_at is not null as ended, coalesce(last_sequence, 0) as last_sequence
         from launch where customer_id = $1 and id = $2",
    )
    .bind(customer)
    .bind(id)
    .fetch_optional(db)
    .await?;
    Ok(found.map(StoredLaunch::from))
}

/// Finds launches that have started, with their executions.
pub(super) async fn find_all(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    ids: &[Uuid],
    numbers: &[i64],
) -> Result<Vec<(LaunchId, ExecutionId)>, Fault> {
    let found = sqlx::query_as(
        "select id, execution_id from launch
         where customer_id = $1 and (id = any($2) or number = any($3)) and execution_id is not null
         order by execution_id",
    );
    Ok(found.bind(customer).bind(ids).bind(numbers).fetch_all(db).await?)
}

/// Starts a launch with its execution. Returns that of the first request, if it was repeated.
pub(super) async fn start(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    id: LaunchId,
    (project, execution): OfProject,
    agent: &str,
) -> Result<ExecutionId, Fault> {
    let start = sqlx::query_scalar(
        "insert into launch as l (customer_id, id, number, project_id, execution_id, agent, due_at)
         values ($1, $2, $3, $4, $5, $6, now() + make_interval(secs => $7))
         on conflict on constraint launch_pkey do update
         set project_id = coalesce(l.project_id, $4), execution_id = coalesce(l.execution_id, $5),
             agent = case when l.execution_id is null then $6 else l.agent end,
             due_at = case when l.execution_id is null then excluded.due_at else l.due_at end
         returning execution_id",
    );
    Ok(start
        .bind(customer)
        .bind(id)
        .bind(number(id))
        .bind(project)
        .bind(execution)
        .bind(agent)
        .bind(IDLE)
        .fetch_one(db)
        .await?)
}

/// Finishes a launch.
pub(super) async fn finish(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    id: LaunchId,
) -> Result<(), Fault> {
    sqlx::query(
        "update launch set finished_at = now(), due_at = now() + make_interval(secs => $3)
         where customer_id = $1 and id = $2 and finished_at is null and ended_at is null",
    )
    .bind(customer)
    .bind(id)
    .bind(GRACE)
    .execute(db)
    .await?;
    Ok(())
}

/// Takes the next launch of any customer that is due, for two minutes.
pub(super) async fn take_due(db: impl PgExecutor<'_>) -> Result<Option<StoredLaunch>, Fault> {
    let taken: Option<Row> = sqlx::query_as(
        "update launch set leased_until = now() + interval '2 minutes'
         where (customer_id, id) = (
             select customer_id, id from launch
             where due_at <= now() and (leased_until is null or leased_until <= now())
             order by due_at limit 1 for update skip locked
         )
         returning customer_id, id, project_id, execution_id, agent,
             finished_at is not null as finished, ended_at is not null as ended,
             coalesce(last_sequence, 0) as last_sequence",
    )
    .fetch_optional(db)
    .await?;
    Ok(taken.map(StoredLaunch::from))
}

/// Lets a launch wait for a minute after a failure, or for the token of a caller.
pub(super) async fn postpone(
    db: impl PgExecutor<'_>,
    launch: &StoredLaunch,
    needs_caller: bool,
) -> Result<(), Fault> {
    sqlx::query(
        "update launch
         set needs_caller = $3, leased_until = null,
             due_at = case when $3 then null else now() + interval '1 minute' end
         where customer_id = $1 and id = $2 and due_at <= now()",
    )
    .bind(launch.customer)
    .bind(launch.id)
    .bind(needs_caller)
    .execute(db)
    .await?;
    Ok(())
}

/// Lists the launches of a customer that need the token of a caller.
pub(super) async fn waiting(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
) -> Result<Vec<LaunchId>, Fault> {
    let waiting = sqlx::query_scalar(
        "select id from launch where customer_id = $1 and needs_caller order by id limit 10",
    );
    Ok(waiting.bind(customer).fetch_all(db).await?)
}

/// Stores the results of a launch that needed the token of a caller soon.
pub(super) async fn resume(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    id: LaunchId,
) -> Result<(), Fault> {
    let resume = sqlx::query(
        "update launch set needs_caller = false, due_at = now() + make_interval(secs => $3)
         where customer_id = $1 and id = $2 and needs_caller",
    );
    resume.bind(customer).bind(id).bind(GRACE).execute(db).await?;
    Ok(())
}

/// Reads requests of a launch after one of them, without files.
pub(super) async fn requests(
    db: impl PgExecutor<'_>,
    launch: &StoredLaunch,
    after: i64,
    with_logs: bool,
) -> Result<Vec<Staged>, Fault> {
    let requests = sqlx::query_as(
        "select sequence, kind, item_id, parent_id, body from launch_request
         where customer_id = $1 and launch_id = $2 and sequence > $3
           and kind <> 'File' and ($4 or kind <> 'Log')
         order by sequence limit $5",
    );
    Ok(requests
        .bind(launch.customer)
        .bind(launch.id)
        .bind(after)
        .bind(with_logs)
        .bind(REQUESTS)
        .fetch_all(db)
        .await?)
}

/// Reads the size of the requests of a launch without files, in bytes.
pub(super) async fn size(db: impl PgExecutor<'_>, launch: &StoredLaunch) -> Result<i64, Fault> {
    let size = sqlx::query_scalar(
        "select coalesce(sum(octet_length(body)), 0)::bigint from launch_request
         where customer_id = $1 and launch_id = $2 and kind <> 'File'",
    );
    Ok(size.bind(launch.customer).bind(launch.id).fetch_one(db).await?)
}

/// Reads the first file of a launch.
pub(super) async fn next_file(
    db: impl PgExecutor<'_>,
    launch: &StoredLaunch,
) -> Result<Option<StagedFile>, Fault> {
    let file = sqlx::query_as(
        "select sequence, body, file_name, content_type from launch_request
         where customer_id = $1 and launch_id = $2 and kind = 'File'
         order by sequence limit 1",
    );
    Ok(file.bind(launch.customer).bind(launch.id).fetch_optional(db).await?)
}

/// Deletes a request.
pub(super) async fn delete_request(
    tx: &mut PgTransaction<'_>,
    launch: &StoredLaunch,
    sequence: i64,
) -> Result<(), Fault> {
    let delete = sqlx::query(
        "delete from launch_request where customer_id = $1 and launch_id = $2 and sequence = $3",
    );
    delete.bind(launch.customer).bind(launch.id).bind(sequence).execute(&mut **tx).await?;
    Ok(())
}

/// Ends a launch after its last request, unless another one has arrived meanwhile. Returns whether it
/// has ended.
pub(super) async fn end(
    db: impl PgExecutor<'_>,
    launch: &StoredLaunch,
    last_sequence: i64,
) -> Result<bool, Fault> {
    let end = sqlx::query(
        "update launch set ended_at = coalesce(ended_at, now()), last_sequence = $3
         where customer_id = $1 and id = $2 and due_at <= now()",
    );
    let done = end.bind(launch.customer).bind(launch.id).bind(last_sequence).execute(db).await?;
    Ok(done.rows_affected() == 1)
}

/// Deletes the requests of a launch up to one of them, in short statements. Nothing is due after
/// that, unless another request arrives.
pub(super) async fn clear(
    db: &PgPool,
    launch: &StoredLaunch,
    last_sequence: i64,
) -> Result<(), Fault> {
    delete_requests(db, launch.customer, launch.id, last_sequence).await?;
    sqlx::query(
        "update launch set due_at = null, leased_until = null
         where customer_id = $1 and id = $2 and due_at <= now()",
    )
    .bind(launch.customer)
    .bind(launch.id)
    .execute(db)
    .await?;
    Ok(())
}

async fn delete_requests(
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

/// Deletes a launch with its requests.
pub(super) async fn remove(db: &PgPool, customer: CustomerId, id: LaunchId) -> Result<(), Fault> {
    delete_requests(db, customer, id, i64::MAX).await?;
    let delete = sqlx::query("delete from launch where customer_id = $1 and id = $2");
    delete.bind(customer).bind(id).execute(db).await?;
    Ok(())
}

/// Deletes the launch of an execution, if there is one.
pub(crate) async fn remove_of_execution(
    db: &PgPool,
    customer: CustomerId,
    execution: ExecutionId,
) -> Result<(), Fault> {
    let launches =
        sqlx::query_scalar("select id from launch where customer_id = $1 and execution_id = $2");
    let launches: Vec<LaunchId> = launches.bind(customer).bind(execution).fetch_all(db).await?;
    for id in launches {
        remove(db, customer, id).await?;
    }
    Ok(())
}

/// Deletes launches of all customers that ended a week ago.
pub(super) async fn remove_old(db: &PgPool) -> Result<(), Fault> {
    sqlx::query(
        "delete from launch
         where due_at is null and ended_at < now() - interval '7 days' and not needs_caller",
    )
    .execute(db)
    .await?;
    Ok(())
}

/// Moves the requests of launches to another one, which is finished, and ends them. Fails if one of
/// them has ended.
pub(super) async fn merge(
    db: &PgPool,
    customer: CustomerId,
    sources: &[LaunchId],
    target: LaunchId,
) -> Result<(), Fault> {
    let mut tx = begin(db).await?;
    let locked: Vec<LaunchId> = sqlx::query_scalar(
        "select id from launch
         where customer_id = $1 and id = any($2) and ended_at is null
         order by id for update",
    )
    .bind(customer)
    .bind(sources)
    .fetch_all(&mut *tx)
    .await?;
    if locked.len() < sources.len() {
        let reason = "a launch has ended already; merge launches right after their end".to_owned();
        return Err(Fault::Conflict { code: "launch_ended", reason });
    }
    for statement in [
        "update launch_request set launch_id = $3 where customer_id = $1 and launch_id = any($2)",
        "update launch set ended_at = now(), last_sequence = 0, due_at = null
         where customer_id = $1 and id = any($2) and $3::uuid is not null",
    ] {
        sqlx::query(statement).bind(customer).bind(sources).bind(target).execute(&mut *tx).await?;
    }
    tx.commit().await?;
    Ok(())
}
