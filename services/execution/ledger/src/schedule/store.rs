//! Schedules in PostgreSQL. Every statement is bound to one customer. Every change except taking a
//! schedule off the queue needs the lock of its execution.

mod waiting;

use assay_proto::{
    CustomerId, ExecutionId, Fault, PoolId, ProjectId, ScheduleId, TestReportId,
    events::ReportState,
};
use sqlx::{FromRow, PgExecutor, PgTransaction};

pub use self::waiting::{dequeue, parts, ranks};
use super::Destination;
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
