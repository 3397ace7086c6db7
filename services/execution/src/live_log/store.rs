//! Live logs in PostgreSQL. Every statement is bound to one customer, except those of the task that
//! removes logs.

use assay_ledger::schedule::Schedule;
use assay_proto::{CustomerId, ExecutionId, Fault, LeaseId, ProjectId, TestReportId};
use sqlx::{FromRow, PgExecutor, PgTransaction};

/// Maximum number of bytes that one read returns.
const PIECE: i64 = 256 << 10;

/// Maximum size of a chunk that grows, in bytes. PostgreSQL rewrites all of it for each text that is appended.
const GROWN: i32 = 1 << 10;

/// Locks the log of a lease, which is created if it does not exist. Returns its size.
pub(super) async fn lock(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    lease: LeaseId,
    schedule: &Schedule,
) -> Result<i64, Fault> {
    let size = sqlx::query_scalar(
        "insert into live_log as log (customer_id, lease_id, execution_id, test_report_id, size)
         values ($1, $2, $3, $4, 0)
         on conflict (customer_id, lease_id) do update set size = log.size
         returning size",
    );
    let size =
        size.bind(customer).bind(lease).bind(schedule.execution_id).bind(schedule.test_report_id);
    Ok(size.fetch_one(&mut **tx).await?)
}

/// Appends bytes to a locked log of this size. A chunk grows by small texts, so that a log has few chunks, however
/// short the texts are.
pub(super) async fn append(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    lease: LeaseId,
    size: i64,
    content: &[u8],
) -> Result<(), Fault> {
    let append = sqlx::query(
        "with last as (
             select max(start) as start from live_log_chunk where customer_id = $1 and lease_id = $2
         ),
         grown as (
             update live_log_chunk as chunk set content = chunk.content || $4::bytea
             from last
             where chunk.customer_id = $1 and chunk.lease_id = $2 and chunk.start = last.start
               and octet_length(chunk.content) + octet_length($4::bytea) <= $5
             returning chunk.start
         ),
         -- A trigger counts new chunks.
         counted as (
             insert into usage (customer_id, kind, bytes)
             select $1, 'artifacts', octet_length($4::bytea) from grown
         ),
         chunk as (
             insert into live_log_chunk (customer_id, lease_id, start, content)
             select $1, $2, $3, $4::bytea where not exists (select from grown)
         )
         update live_log set size = $3 + octet_length($4::bytea)
         where customer_id = $1 and lease_id = $2",
    );
    let append = append.bind(customer).bind(lease).bind(size).bind(content).bind(GROWN);
    append.execute(&mut **tx).await?;
    Ok(())
}

/// The latest log of a test report.
#[derive(Clone, Debug, FromRow)]
pub(super) struct LatestLog {
    pub(super) lease_id: LeaseId,
    pub(super) engine: String,
    pub(super) size: i64,
    /// Whether its lease is held.
    pub(super) is_held: bool,
}

/// Returns whether a test report, of this project or any, has not ended.
pub(super) async fn is_pending(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    project: Option<ProjectId>,
    execution: ExecutionId,
    report: TestReportId,
) -> Result<bool, Fault> {
    let pending = sqlx::query_scalar(
        "select r.status in ('NotExecuted', 'Running') from test_report r
         join live_execution e on e.customer_id = r.customer_id and e.id = r.execution_id
         where r.customer_id = $1 and r.id = $2 and r.execution_id = $3
           and ($4::uuid is null or e.project_id = $4)",
    );
    let pending = pending.bind(customer).bind(report).bind(execution).bind(project);
    pending.fetch_optional(db).await?.ok_or(Fault::NotFound("test report"))
}

/// Finds the latest log of a test report that has not become an artifact, or whose lease a reader knows.
pub(super) async fn latest(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    report: TestReportId,
    followed: Option<LeaseId>,
) -> Result<Option<LatestLog>, Fault> {
    let log = sqlx::query_as(
        "select lease_id, engine, size,
                l.ended_at is null as is_held
         from live_log
         join lease l on l.customer_id = live_log.customer_id and l.id = lease_id
         where live_log.customer_id = $1 and test_report_id = $2
           and (sealed_at is null or lease_id = $3)
         order by lease_id desc
         limit 1",
    );
    Ok(log.bind(customer).bind(report).bind(followed).fetch_optional(db).await?)
}

/// Reads a piece of a log from a position.
pub(super) async fn read(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    lease: LeaseId,
    from: i64,
) -> Result<Vec<u8>, Fault> {
    let chunks: Vec<(i64, Vec<u8>)> = sqlx::query_as(
        "select start, content from live_log_chunk
         where customer_id = $1 and lease_id = $2
           and start >= coalesce((
               select max(start) from live_log_chunk
               where customer_id = $1 and lease_id = $2 and start <= $3
           ), 0)
           and start < $3 + $4
         order by start",
    )
    .bind(customer)
    .bind(lease)
    .bind(from)
    .bind(PIECE)
    .fetch_all(db)
    .await?;
    let first = chunks.first().map_or(from, |(start, _)| *start);
    let skipped = usize::try_from(from - first).unwrap_or_default();
    let piece: Vec<u8> = chunks.into_iter().flat_map(|(_, content)| content).collect();
    let piece = piece.get(skipped..).unwrap_or_default();
    Ok(piece[..piece.len().min(usize::try_from(PIECE).unwrap_or(usize::MAX))].to_vec())
}

/// A log whose lease has ended.
#[derive(Clone, Copy, Debug, FromRow)]
pub(super) struct EndedLog {
    pub(super) customer_id: CustomerId,
    pub(super) lease_id: LeaseId,
    pub(super) execution_id: ExecutionId,
    pub(super) test_report_id: TestReportId,
    /// Whether its engine has completed the lease, or its execution has ended. Otherwise another
    /// engine runs the test.
    pub(super) is_final: bool,
    /// Whether it could not be stored for a day.
    pub(super) is_old: bool,
}

/// Lists logs of all customers whose leases have ended and which have not become artifacts, after one of them. Waits
/// for engines that append to them at this moment: later ones are refused.
pub(super) async fn ended(
    db: impl PgExecutor<'_>,
    after: Option<EndedLog>,
) -> Result<Vec<EndedLog>, Fault> {
    let ended = sqlx::query_as(
        "select log.customer_id, lease_id, log.execution_id, log.test_report_id,
                coalesce(outcome in ('Completed', 'Canceled'), false) as is_final,
                coalesce(ended_at, begun_at) < now() - interval '1 day' as is_old
         from live_log log
         left join lease l on l.customer_id = log.customer_id and l.id = log.lease_id
         where sealed_at is null and (l.id is null or l.ended_at is not null)
           and (log.customer_id, lease_id) > ($1, $2)
         order by log.customer_id, lease_id
         limit 100
         for update of log",
    );
    let nil = (CustomerId(uuid::Uuid::nil()), LeaseId(uuid::Uuid::nil()));
    let (customer, lease) = after.map_or(nil, |log| (log.customer_id, log.lease_id));
    Ok(ended.bind(customer).bind(lease).fetch_all(db).await?)
}

/// Records that a log is an artifact, or cannot become one. Returns whether neither was recorded before.
pub(super) async fn mark_sealed(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    lease: LeaseId,
) -> Result<bool, Fault> {
    let seal = sqlx::query(
        "update live_log set sealed_at = now()
         where customer_id = $1 and lease_id = $2 and sealed_at is null",
    );
    Ok(seal.bind(customer).bind(lease).execute(db).await?.rows_affected() > 0)
}

/// Removes up to 100 logs of all customers that have been artifacts for a minute. Returns their number.
pub(super) async fn remove_sealed(db: impl PgExecutor<'_>) -> Result<i64, Fault> {
    let remove = sqlx::query_scalar(
        "with sealed as (
             select customer_id, lease_id from live_log
             where sealed_at < now() - interval '1 minute'
             limit 100
             for update skip locked
         ),
         removed as (
             delete from live_log log using sealed
             where log.customer_id = sealed.customer_id and log.lease_id = sealed.lease_id
         ),
         chunk as (
             delete from live_log_chunk chunk using sealed
             where chunk.customer_id = sealed.customer_id and chunk.lease_id = sealed.lease_id
         )
         select count(*) from sealed",
    );
    Ok(remove.fetch_one(db).await?)
}
