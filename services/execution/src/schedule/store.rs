//! Schedules in PostgreSQL. Every statement is bound to one customer. But for taking one off the
//! queue, whoever changes a schedule has locked its execution.

use std::cmp::Reverse;

use assay_proto::{
    CustomerId, ExecutionId, Fault, ProjectId, ScheduleId, TestReportId, events::ReportState,
};
use sqlx::{FromRow, PgTransaction};

use super::Destination;
use crate::{column::column, execution::ids_of, test_report::Progress};

/// Adds the schedules of an execution that starts, one for each report, in the same order.
pub(crate) async fn insert(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    project: ProjectId,
    execution: ExecutionId,
    destination: &Destination,
    reports: &[Progress],
) -> Result<(), Fault> {
    sqlx::query(
        "insert into schedule (customer_id, project_id, execution_id, target_group,
             needs_public_ip, priority, status, id, test_report_id, report_sequence_nr)
         select $1, $2, $3, $4, $5, $8, 'Queued', id, report, place
         from unnest($6::uuid[], $7::text[]::uuid[]) with ordinality as s (id, report, place)",
    )
    .bind(customer)
    .bind(project)
    .bind(execution)
    .bind(&destination.target_group)
    .bind(destination.needs_public_ip)
    .bind(column(reports, |_| ScheduleId::new()))
    .bind(column(reports, |report| report.state.id.as_str()))
    .bind(destination.priority)
    .execute(&mut **tx)
    .await?;
    Ok(())
}

/// A schedule that an engine has taken.
#[derive(Debug, FromRow)]
pub(crate) struct Taken {
    pub(crate) id: ScheduleId,
    pub(crate) execution_id: ExecutionId,
    pub(crate) project_id: ProjectId,
    pub(crate) test_report_id: TestReportId,
    priority: i16,
}

/// Takes the first schedules off a queue that nobody else is taking.
pub(crate) async fn take(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    target_group: &str,
    needs_public_ip: Option<bool>,
    most: i32,
) -> Result<Vec<Taken>, Fault> {
    let taken = sqlx::query_as(
        "with first as materialized (
             select id from schedule s
             where customer_id = $1 and target_group = $2 and status = 'Queued'
               and ($4::boolean is null or needs_public_ip = $4)
               and not exists (
                   select from deletion d
                   where d.customer_id = s.customer_id
                     and d.project_id in (s.project_id, '00000000-0000-0000-0000-000000000000')
               )
             order by priority desc, id
             limit $3
             for update skip locked
         )
         update schedule set status = 'Running', schedule_sent_at = now()
         where customer_id = $1 and id = any(array(select id from first))
         returning id, execution_id, project_id, test_report_id, priority",
    )
    .bind(customer)
    .bind(target_group)
    .bind(most)
    .bind(needs_public_ip);
    let mut taken: Vec<Taken> = taken.fetch_all(&mut **tx).await?;
    taken.sort_unstable_by_key(|schedule| (Reverse(schedule.priority), schedule.id));
    Ok(taken)
}

/// Notes that the reports of schedules have ended.
pub(crate) async fn complete(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    finished: &[ReportState],
) -> Result<(), Fault> {
    if finished.is_empty() {
        return Ok(());
    }
    sqlx::query(
        "update schedule set status = 'Completed'
         where customer_id = $1 and test_report_id = any($2) and status in ('Queued', 'Running')",
    )
    .bind(customer)
    .bind(ids_of(finished)?)
    .execute(&mut **tx)
    .await?;
    Ok(())
}

/// Takes the schedules of an execution off the queue. Says whose reports these are.
pub(crate) async fn cancel_queued(
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

/// Cancels the schedules of an execution, also those that engines are working at.
pub(crate) async fn cancel_all(
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

/// A schedule whose engine was not heard of again.
#[derive(Debug, FromRow)]
pub(crate) struct Lost {
    pub(crate) id: ScheduleId,
    pub(crate) test_report_id: TestReportId,
    /// How many engines that makes.
    pub(crate) engines: i32,
}

/// Counts one more engine that was not heard of again, for those of these schedules that are not
/// done.
pub(crate) async fn lose(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    ids: &[ScheduleId],
) -> Result<Vec<Lost>, Fault> {
    let lost = sqlx::query_as(
        "update schedule set lost_leases = lost_leases + 1
         where customer_id = $1 and id = any($2) and status = 'Running'
         returning id, test_report_id, lost_leases as engines",
    );
    Ok(lost.bind(customer).bind(ids).fetch_all(&mut **tx).await?)
}

/// Puts schedules that an engine had back into the queue, at their old places. Says which these
/// are, and which engines are to be told.
pub(crate) async fn put_back(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    ids: &[ScheduleId],
) -> Result<Vec<(TestReportId, String)>, Fault> {
    let back = sqlx::query_as(
        "update schedule set status = 'Queued'
         where customer_id = $1 and id = any($2) and status = 'Running'
         returning test_report_id, target_group",
    );
    Ok(back.bind(customer).bind(ids).fetch_all(&mut **tx).await?)
}
