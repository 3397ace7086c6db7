//! The order of queued work, and how it is taken off its queues.

use std::cmp::Reverse;

use assay_proto::{CustomerId, Fault, ProjectId, ScheduleId};
use sqlx::{AssertSqlSafe, PgExecutor, PgTransaction};

use crate::schedule::{
    Schedule,
    queue::{QueueName, QueuePart, Rank},
};

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
    let first = first_of_each("and project_id = project");
    let parts: Vec<(String, ProjectId, i16, ScheduleId)> = sqlx::query_as(AssertSqlSafe(format!(
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
         {first}"
    )))
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
    let first = first_of_each("");
    let queues: Vec<(String, i16, ScheduleId)> = sqlx::query_as(AssertSqlSafe(format!(
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
         {first}"
    )))
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

/// The end of a query of queues that are `named`: each with its first schedule, those with the most urgent one first.
fn first_of_each(and_of_project: &str) -> String {
    format!(
        "cross join lateral (
             select priority, id from schedule
             where customer_id = $1 and target_group = name and status = 'Queued' {and_of_project}
             order by priority desc, id
             limit 1
         ) as first
         order by priority desc, id"
    )
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
