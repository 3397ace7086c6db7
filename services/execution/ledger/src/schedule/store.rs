//! Schedules in PostgreSQL. Every statement is bound to one customer. Every change except taking a
//! schedule off the queue needs the lock of its execution.

use std::cmp::Reverse;

use assay_proto::{
    CustomerId, ExecutionId, Fault, PoolId, ProjectId, ScheduleId, TestReportId,
    events::ReportState,
};
use sqlx::{AssertSqlSafe, FromRow, PgExecutor, PgTransaction};

use super::{
    Destination, Schedule,
    queue::{QueueName, QueuePart, Rank},
};
use crate::{column::column, progress::report::TestReportState};

/// Inserts the schedules of a new execution, one for each report and in the same order.
pub async fn insert(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    project: ProjectId,
    execution: ExecutionId,
    destination: &Destination,
    reports: &[TestReportState],
) -> Result<(), Fault> {
    sqlx::query(
        "insert into schedule (customer_id, project_id, execution_id, needs_public_ip, priority,
             status, target_group, id, test_report_id, maximum_duration_in_min, report_sequence_nr)
         select $1, $2, $3, $5, $8, 'Queued', s.*
         from unnest($4::text[], $6::uuid[], $7::text[]::uuid[], $9::float8[])
             with ordinality as s",
    )
    .bind(customer)
    .bind(project)
    .bind(execution)
    .bind(column(reports, |one| destination.queue_of(&one.published.test_case_id).as_str()))
    .bind(destination.needs_public_ip)
    .bind(column(reports, |_| ScheduleId::new()))
    .bind(column(reports, |report| report.published.id.as_str()))
    .bind(destination.priority)
    .bind(column(reports, |report| report.maximum_duration_in_min))
    .execute(&mut **tx)
    .await?;
    Ok(())
}

/// Maximum number of queues of a customer among which engines look for work.
const MOST_QUEUES: i32 = 1000;

/// Lists the queues of a customer that have work, those with the most urgent work first. Those of the
/// `offered` labels alone are always among them.
///
/// One look into the index of the queue finds the next name, so the number of schedules does not matter.
async fn queues(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    offered: &[String],
) -> Result<Vec<QueuePart>, Fault> {
    let queues: Vec<(String, i16, ScheduleId)> = sqlx::query_as(
        "with recursive queue (name, number) as (
             (select target_group, 1 from schedule
              where customer_id = $1 and status = 'Queued'
              order by target_group
              limit 1)
             union all
             select (
                 select target_group from schedule
                 where customer_id = $1 and status = 'Queued' and target_group > queue.name
                 order by target_group
                 limit 1
             ), number + 1
             from queue
             where queue.name is not null and number < $3
         )
         select name, priority, id
         from (select name from queue union select unnest($2::text[])) as named
         cross join lateral (
             select priority, id from schedule
             where customer_id = $1 and target_group = name and status = 'Queued'
             order by priority desc, id
             limit 1
         ) as first
         order by priority desc, id",
    )
    .bind(customer)
    .bind(offered)
    .bind(MOST_QUEUES)
    .fetch_all(db)
    .await?;
    let part = |(name, priority, id)| QueuePart {
        queue: QueueName::stored(name),
        project: None,
        first: Rank(Reverse(priority), id),
    };
    Ok(queues.into_iter().map(part).collect())
}

/// Returns whether queued work of a project needs values of a pool.
pub async fn needs_pool(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    project: ProjectId,
    pool: PoolId,
) -> Result<bool, Fault> {
    // The id precedes nothing but other ids, or ends the name.
    let needs = sqlx::query_scalar(
        "select exists (
             select from schedule
             where customer_id = $1 and project_id = $2 and status = 'Queued'
               and position(e'\\x1d' || $3::text in target_group) > 0
         )",
    );
    Ok(needs.bind(customer).bind(project).bind(pool).fetch_one(db).await?)
}

/// Lists the parts of queues that have work of these projects, or of all projects if there are none, those with
/// the most urgent work first.
pub async fn parts(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    offered: &[String],
    projects: &[ProjectId],
) -> Result<Vec<QueuePart>, Fault> {
    if projects.is_empty() {
        return queues(db, customer, offered).await;
    }
    let most = MOST_QUEUES / i32::try_from(projects.len()).map_err(Fault::internal)?;
    let parts: Vec<(String, ProjectId, i16, ScheduleId)> = sqlx::query_as(
        "with recursive queue (project, name, number) as (
             select project, (
                 select target_group from schedule
                 where customer_id = $1 and project_id = project and status = 'Queued'
                 order by target_group
                 limit 1
             ), 1
             from unnest($4::uuid[]) as asked (project)
             union all
             select project, (
                 select target_group from schedule
                 where customer_id = $1 and project_id = project and status = 'Queued'
                   and target_group > queue.name
                 order by target_group
                 limit 1
             ), number + 1
             from queue
             where queue.name is not null and number < $3
         )
         select name, project, priority, id
         from (
             select project, name from queue
             union
             select project, label from unnest($4::uuid[]) as asked (project)
             cross join unnest($2::text[]) as offered (label)
         ) as named
         cross join lateral (
             select priority, id from schedule
             where customer_id = $1 and project_id = project and target_group = name
               and status = 'Queued'
             order by priority desc, id
             limit 1
         ) as first
         order by priority desc, id",
    )
    .bind(customer)
    .bind(offered)
    .bind(most)
    .bind(projects)
    .fetch_all(db)
    .await?;
    let part = |(name, project, priority, id)| QueuePart {
        queue: QueueName::stored(name),
        project: Some(project),
        first: Rank(Reverse(priority), id),
    };
    Ok(parts.into_iter().map(part).collect())
}

/// The schedules of the part of a queue that an engine may do. Parameters are the customer, the name of the queue, the
/// limit, the need of a public IP address, and the project.
///
/// The work of all projects and that of one have an index each, so that no statement reads work that it does not
/// return.
fn first(part: &QueuePart) -> String {
    let of_project = if part.project.is_some() { "project_id = $5" } else { "$5::uuid is null" };
    format!(
        "from schedule s
         where customer_id = $1 and target_group = $2 and status = 'Queued' and {of_project}
           and ($4::boolean is null or needs_public_ip = $4)
           and not exists (
               select from deletion d
               where d.customer_id = s.customer_id
                 and d.project_id in (s.project_id, '00000000-0000-0000-0000-000000000000')
           )
         order by priority desc, id
         limit $3"
    )
}

/// Returns the places of the first schedules of a part of a queue.
pub async fn ranks(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    part: &QueuePart,
    needs_public_ip: Option<bool>,
    limit: i32,
) -> Result<Vec<Rank>, Fault> {
    let first = first(part);
    let ranks = sqlx::query_as(AssertSqlSafe(format!("select priority, id {first}")));
    let ranks = ranks.bind(customer).bind(part.queue.as_str()).bind(limit);
    let ranks = ranks.bind(needs_public_ip).bind(part.project);
    let ranks: Vec<(i16, ScheduleId)> = ranks.fetch_all(&mut **tx).await?;
    Ok(ranks.into_iter().map(|(priority, id)| Rank(Reverse(priority), id)).collect())
}

/// Takes the first schedules off a part of a queue. Skips those that other transactions have locked.
pub async fn dequeue(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    part: &QueuePart,
    needs_public_ip: Option<bool>,
    limit: i32,
) -> Result<Vec<Schedule>, Fault> {
    let first = first(part);
    let schedules = sqlx::query_as(AssertSqlSafe(format!(
        "with first as materialized (select id {first} for update skip locked)
         update schedule set status = 'Running', schedule_sent_at = now()
         where customer_id = $1 and id = any(array(select id from first))
         returning id, execution_id, project_id, test_report_id, target_group,
             maximum_duration_in_min"
    )));
    let schedules = schedules.bind(customer).bind(part.queue.as_str()).bind(limit);
    let schedules = schedules.bind(needs_public_ip).bind(part.project);
    Ok(schedules.fetch_all(&mut **tx).await?)
}

/// Completes the schedules of reports that have ended.
pub async fn complete(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    finished: &[ReportState],
) -> Result<(), Fault> {
    if finished.is_empty() {
        return Ok(());
    }
    let reports = finished.iter().map(|report| TestReportId::from_record(&report.id));
    let reports: Vec<TestReportId> = reports.collect::<Result<_, _>>()?;
    sqlx::query(
        "update schedule set status = 'Completed'
         where customer_id = $1 and test_report_id = any($2) and status in ('Queued', 'Running')",
    )
    .bind(customer)
    .bind(reports)
    .execute(&mut **tx)
    .await?;
    Ok(())
}

/// Cancels the queued schedules of an execution, and returns their reports.
pub async fn cancel_queued(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    execution: ExecutionId,
) -> Result<Vec<TestReportId>, Fault> {
    let canceled = sqlx::query_scalar(
        "update schedule set status = 'Canceled'
         where customer_id = $1 and execution_id = $2 and status = 'Queued'
         returning test_report_id",
    );
    Ok(canceled.bind(customer).bind(execution).fetch_all(&mut **tx).await?)
}

/// Cancels the schedules of an execution, including those that engines are working on.
pub async fn cancel_all(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    execution: ExecutionId,
) -> Result<(), Fault> {
    sqlx::query(
        "update schedule set status = 'Canceled'
         where customer_id = $1 and execution_id = $2 and status in ('Queued', 'Running')",
    )
    .bind(customer)
    .bind(execution)
    .execute(&mut **tx)
    .await?;
    Ok(())
}

/// A schedule whose lease has expired.
#[derive(Debug, FromRow)]
pub struct ExpiredSchedule {
    pub id: ScheduleId,
    pub test_report_id: TestReportId,
    /// Number of leases of this schedule that have expired.
    pub lost_leases: i32,
}

/// Counts an expired lease for each of the schedules that is still running, and returns these.
pub async fn count_lost_leases(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    ids: &[ScheduleId],
) -> Result<Vec<ExpiredSchedule>, Fault> {
    let expired = sqlx::query_as(
        "update schedule set lost_leases = lost_leases + 1
         where customer_id = $1 and id = any($2) and status = 'Running'
         returning id, test_report_id, lost_leases",
    );
    Ok(expired.bind(customer).bind(ids).fetch_all(&mut **tx).await?)
}

/// Returns running schedules to the queue at their old positions. Returns their reports and the names
/// of their queues.
pub async fn requeue(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    ids: &[ScheduleId],
) -> Result<Vec<(TestReportId, String)>, Fault> {
    let requeued = sqlx::query_as(
        "update schedule set status = 'Queued'
         where customer_id = $1 and id = any($2) and status = 'Running'
         returning test_report_id, target_group",
    );
    Ok(requeued.bind(customer).bind(ids).fetch_all(&mut **tx).await?)
}
