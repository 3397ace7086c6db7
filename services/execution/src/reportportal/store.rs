//! Launches and their requests in PostgreSQL. Every statement of a request is bound to one customer.

mod due;
pub(super) mod merging;
mod requests;

use std::collections::HashSet;

use assay_ledger::column::column;
use assay_proto::{CustomerId, ExecutionId, Fault, LaunchId, ProjectId, TestSetId};
use sqlx::{AssertSqlSafe, FromRow, PgExecutor, PgPool};
use uuid::Uuid;

pub(crate) use self::due::LAUNCH;
pub(super) use self::{
    due::{
        LEASE, count_waiting, end, release, remove_old, renew, resume, take_due, wait_for_caller,
        waiting,
    },
    requests::{PAGE, Staged, next_file, requests},
};
use super::body::{Entry, number};

/// Seconds from the last request of a launch until its results are stored: of one that has finished,
/// that is not finished, and that has not started.
const GRACE: f64 = 5.0;
const IDLE: f64 = 2.0 * 3600.0;
const UNKNOWN: f64 = 24.0 * 3600.0;

/// The execution of a launch, with its project.
pub(super) type OfProject = (ProjectId, ExecutionId);

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
    /// Whether its results could not be stored for a day.
    pub(super) is_overdue: bool,
    /// How often its tests were run again.
    pub(super) reruns: i32,
    pub(super) description: String,
    /// The launch that it was merged into.
    pub(super) merged_into: Option<LaunchId>,
}

/// The columns of a launch.
const COLUMNS: &str = "customer_id, id, project_id, execution_id, agent,
    finished_at is not null as finished, ended_at is not null as ended,
    coalesce(last_sequence, 0) as last_sequence,
    coalesce(due_at <= now() - interval '1 day', false) as is_overdue, reruns, description,
    merged_into";

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
    is_overdue: bool,
    reruns: i32,
    description: String,
    merged_into: Option<LaunchId>,
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
            is_overdue: row.is_overdue,
            reruns: row.reruns,
            description: row.description,
            merged_into: row.merged_into,
        }
    }
}

/// Stores requests, except items that start in a launch that has ended. Returns the launches that
/// have.
///
/// The row of the launch is locked before its requests are numbered, so those of one launch are
/// committed in the order of their numbers.
pub(super) async fn stage(
    db: impl PgExecutor<'_>,
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
    let find = sqlx::query_as(AssertSqlSafe(format!(
        "select {COLUMNS} from launch where customer_id = $1 and id = $2"
    )));
    let found: Option<Row> = find.bind(customer).bind(id).fetch_optional(db).await?;
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
    (agent, description): (&str, &str),
) -> Result<ExecutionId, Fault> {
    let start = sqlx::query_scalar(
        "insert into launch as l (customer_id, id, number, project_id, execution_id, agent, due_at,
             description)
         values ($1, $2, $3, $4, $5, $6, now() + make_interval(secs => $7), $8)
         on conflict on constraint launch_pkey do update
         set project_id = coalesce(l.project_id, $4), execution_id = coalesce(l.execution_id, $5),
             agent = case when l.execution_id is null then $6 else l.agent end,
             description = case when l.execution_id is null then $8 else l.description end,
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
        .bind(description)
        .fetch_one(db)
        .await?)
}

/// Returns the last launch of a test set whose results are not stored yet.
pub(super) async fn last(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    set: TestSetId,
) -> Result<Option<LaunchId>, Fault> {
    let last = sqlx::query_scalar(
        "select l.id from live_execution e
         join launch l on l.customer_id = e.customer_id and l.execution_id = e.id
         where e.customer_id = $1 and e.test_set_id = $2 and l.ended_at is null
         order by e.id desc limit 1",
    );
    Ok(last.bind(customer).bind(set).fetch_optional(db).await?)
}

/// Continues a launch whose results are not stored yet, because its tests are run again. Returns its
/// execution, if there is such a launch.
pub(super) async fn rerun(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    project: ProjectId,
    id: LaunchId,
) -> Result<Option<ExecutionId>, Fault> {
    let rerun = sqlx::query_scalar(
        "update launch l
         set reruns = reruns + 1, finished_at = null, due_at = now() + make_interval(secs => $3)
         where customer_id = $1 and id = $2 and project_id = $4 and ended_at is null and exists (
             select from live_execution e
             where e.customer_id = l.customer_id and e.id = l.execution_id
               and e.status in ('Queued', 'Running')
         )
         returning execution_id",
    );
    Ok(rerun.bind(customer).bind(id).bind(IDLE).bind(project).fetch_optional(db).await?)
}

/// Changes the description of a launch.
pub(super) async fn describe(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    id: LaunchId,
    description: &str,
) -> Result<(), Fault> {
    let describe =
        sqlx::query("update launch set description = $3 where customer_id = $1 and id = $2");
    describe.bind(customer).bind(id).bind(description).execute(db).await?;
    Ok(())
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

/// Deletes a launch with its requests.
pub(super) async fn remove(db: &PgPool, customer: CustomerId, id: LaunchId) -> Result<(), Fault> {
    requests::delete_requests(db, customer, id, i64::MAX).await?;
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

/// Returns the launches of requests, each once, with their numbers.
fn launches(entries: &[Entry]) -> (Vec<LaunchId>, Vec<i64>) {
    let mut launches: Vec<_> =
        entries.iter().map(|entry| entry.launch).collect::<HashSet<_>>().into_iter().collect();
    // In one order, so that transactions do not deadlock.
    launches.sort_unstable();
    let numbers = launches.iter().map(|launch| number(*launch)).collect();
    (launches, numbers)
}
