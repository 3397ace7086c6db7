//! Debug records in PostgreSQL. Every statement is bound to one customer.

use assay_proto::{
    CustomerId, Fault, TestReportId,
    execution::{DebugReport, DebugSchedule, DebugTestReport},
};
use sqlx::{FromRow, PgExecutor};
use uuid::Uuid;

#[derive(FromRow)]
struct StoredReport {
    project_id: Uuid,
    test_case_id: Uuid,
    test_plan_id: Uuid,
    #[sqlx(flatten)]
    report: DebugTestReport,
}

/// Reads the debug record of a report, without its results.
pub(super) async fn report(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    id: TestReportId,
) -> Result<DebugReport, Fault> {
    let stored: Option<StoredReport> = sqlx::query_as(
        "select e.project_id, r.test_case_id, r.test_plan_id, r.id, r.status, r.result,
                r.execution_number, r.requested_instances_count as instance_count,
                r.status not in ('NotExecuted', 'Running') as is_finished,
                r.start_date_time as started_at, r.finish_date_time as finished_at, r.comment,
                e.archived, false as deleted
         from test_report r
         join live_execution e on e.customer_id = r.customer_id and e.id = r.execution_id
         where r.customer_id = $1 and r.id = $2",
    )
    .bind(customer)
    .bind(id)
    .fetch_optional(db)
    .await?;
    let stored = stored.ok_or(Fault::NotFound("test report"))?;
    Ok(DebugReport {
        project_id: stored.project_id.to_string(),
        test_case_id: stored.test_case_id.to_string(),
        test_plan_id: stored.test_plan_id.to_string(),
        test_report: Some(stored.report),
        ..DebugReport::default()
    })
}

/// Lists the schedules of a report. Times have no time zone.
pub(super) async fn schedules(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    report: TestReportId,
) -> Result<Vec<DebugSchedule>, Fault> {
    let schedules = sqlx::query_as(
        "select s.id, s.report_sequence_nr, s.status,
                to_char(s.initial_queued_time at time zone 'utc', 'YYYY-MM-DD\"T\"HH24:MI:SS.US')
                    as initial_queued_time,
                to_char(s.schedule_sent_at at time zone 'utc', 'YYYY-MM-DD\"T\"HH24:MI:SS.US')
                    as schedule_sent_at,
                r.minimum_duration_in_min, s.needs_public_ip,
                e.software_version as software_identifier, e.stop_on_failure, e.tags,
                substring(s.target_group from e'^[^\\x1d-\\x1f]*') as target_group,
                e.environment_name as test_environment_identifier
         from schedule s
         join test_report r on r.customer_id = s.customer_id and r.id = s.test_report_id
         join execution e on e.customer_id = s.customer_id and e.id = s.execution_id
         where s.customer_id = $1 and s.test_report_id = $2
         order by s.id",
    );
    Ok(schedules.bind(customer).bind(report).fetch_all(db).await?)
}
