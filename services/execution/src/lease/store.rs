//! Leases in PostgreSQL. Every statement is bound to one customer. Whoever ends a lease has locked
//! its execution.

use std::time::Duration;

use assay_auth::Caller;
use assay_proto::{
    CustomerId, EnumColumn, EnvironmentId, ExecutionId, Fault, LeaseId, ProjectId, ScheduleId,
    SubjectId, TestCaseId, TestPlanId, TestReportId, TestType, Timestamp,
};
use sqlx::{FromRow, PgExecutor, PgTransaction};

use crate::{lease::rules::lost, schedule::store::Taken};

/// Where a lease belongs. Of a deleted project it is lost.
#[derive(Clone, Copy, Debug, FromRow)]
pub(crate) struct Place {
    pub(crate) schedule: ScheduleId,
    pub(crate) execution: ExecutionId,
    pub(crate) project: ProjectId,
    pub(crate) report: TestReportId,
    is_deleted: bool,
}

pub(crate) async fn find(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    id: LeaseId,
) -> Result<Place, Fault> {
    let place = sqlx::query_as(
        "select s.id as schedule, s.execution_id as execution, s.project_id as project,
                s.test_report_id as report, e.id is null as is_deleted
         from lease l
         join schedule s on s.customer_id = l.customer_id and s.id = l.schedule_id
         left join live_execution e on e.customer_id = l.customer_id and e.id = l.execution_id
         where l.customer_id = $1 and l.id = $2",
    );
    let place: Option<Place> = place.bind(customer).bind(id).fetch_optional(db).await?;
    let place = place.ok_or(Fault::NotFound("lease"))?;
    if place.is_deleted { Err(lost()) } else { Ok(place) }
}

/// Whether a lease still holds, and if not, why.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum State {
    Held,
    /// Its engine was done with it.
    Completed,
    /// Its engine has given it back.
    Released,
    /// Its execution has ended.
    Canceled,
    /// It was not renewed in time.
    Lost,
}

/// Where a lease stands, and when it expires.
pub(crate) async fn state(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    id: LeaseId,
) -> Result<(State, Timestamp), Fault> {
    let found: Option<(Option<String>, bool, Timestamp)> = sqlx::query_as(
        "select case when exists (
                    select from live_execution e
                    where e.customer_id = $1 and e.id = l.execution_id
                ) then outcome else 'Lost' end,
                expires_at <= clock_timestamp(), expires_at
         from lease l
         where customer_id = $1 and id = $2",
    )
    .bind(customer)
    .bind(id)
    .fetch_optional(db)
    .await?;
    let (outcome, is_over, expires_at) = found.ok_or(Fault::NotFound("lease"))?;
    let state = match outcome.as_deref() {
        None if is_over => State::Lost,
        None => State::Held,
        Some("Completed") => State::Completed,
        Some("Released") => State::Released,
        Some("Canceled") => State::Canceled,
        Some(_) => State::Lost,
    };
    Ok((state, expires_at))
}

/// Grants leases on schedules that were just taken, in the same order.
pub(crate) async fn grant(
    tx: &mut PgTransaction<'_>,
    caller: &Caller,
    engine: &str,
    lasting: Duration,
    schedules: &[Taken],
) -> Result<(Vec<LeaseId>, Timestamp), Fault> {
    let ids: Vec<LeaseId> = schedules.iter().map(|_| LeaseId::new()).collect();
    let expiries: Vec<Timestamp> = sqlx::query_scalar(
        "insert into lease (customer_id, user_id, engine, expires_at, id, schedule_id,
             execution_id)
         select $1, $2, $3, now() + make_interval(secs => $4), granted.*
         from unnest($5::uuid[], $6::uuid[], $7::uuid[]) as granted
         returning expires_at",
    )
    .bind(caller.customer)
    .bind(caller.user)
    .bind(engine)
    .bind(lasting.as_secs_f64())
    .bind(&ids)
    .bind(schedules.iter().map(|schedule| schedule.id).collect::<Vec<_>>())
    .bind(schedules.iter().map(|schedule| schedule.execution_id).collect::<Vec<_>>())
    .fetch_all(&mut **tx)
    .await?;
    let expires_at = expiries.first().copied().unwrap_or_default();
    Ok((ids, expires_at))
}

/// Renews a lease that still holds. Says until when, and whether its engine is to go on.
pub(crate) async fn renew(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    id: LeaseId,
    lasting: Duration,
) -> Result<Option<(Timestamp, bool)>, Fault> {
    let renewed = sqlx::query_as(
        "update lease set expires_at = now() + make_interval(secs => $3)
         where customer_id = $1 and id = $2 and ended_at is null
           and expires_at > clock_timestamp()
           and exists (
               select from live_execution e
               where e.customer_id = $1 and e.id = lease.execution_id
           )
         returning expires_at, (
             select e.status in ('Queued', 'Running')
                 and not (e.stop_on_failure and e.result in ('Failed', 'Error'))
             from execution e
             where e.customer_id = $1 and e.id = lease.execution_id
         )",
    );
    Ok(renewed.bind(customer).bind(id).bind(lasting.as_secs_f64()).fetch_optional(db).await?)
}

/// Ends a lease that its engine still holds.
pub(crate) async fn end(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    id: LeaseId,
    outcome: &'static str,
) -> Result<(), Fault> {
    sqlx::query(
        "update lease set ended_at = now(), outcome = $3
         where customer_id = $1 and id = $2 and ended_at is null",
    )
    .bind(customer)
    .bind(id)
    .bind(outcome)
    .execute(&mut **tx)
    .await?;
    Ok(())
}

/// Ends the leases of an execution that has ended.
pub(crate) async fn cancel_all(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    execution: ExecutionId,
) -> Result<(), Fault> {
    sqlx::query(
        "update lease set ended_at = now(), outcome = 'Canceled'
         where customer_id = $1 and execution_id = $2 and ended_at is null",
    )
    .bind(customer)
    .bind(execution)
    .execute(&mut **tx)
    .await?;
    Ok(())
}

/// Ends the leases of an execution that were not renewed in time. Says on which schedules.
pub(crate) async fn lose(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    execution: ExecutionId,
) -> Result<Vec<ScheduleId>, Fault> {
    let lost = sqlx::query_scalar(
        "update lease set ended_at = now(), outcome = 'Lost'
         where customer_id = $1 and execution_id = $2 and ended_at is null
           and expires_at <= clock_timestamp()
         returning schedule_id",
    );
    Ok(lost.bind(customer).bind(execution).fetch_all(&mut **tx).await?)
}

/// How many leases engines hold, of any customer.
pub(crate) async fn held(db: impl PgExecutor<'_>) -> Result<f64, Fault> {
    let held = sqlx::query_scalar("select count(*)::float8 from lease where ended_at is null");
    Ok(held.fetch_one(db).await?)
}

/// What an engine has to know of a report that it is to fill.
#[derive(Debug, FromRow)]
pub(crate) struct Work {
    pub(crate) id: TestReportId,
    pub(crate) test_case_id: TestCaseId,
    pub(crate) test_case_identifier: String,
    pub(crate) test_case_name: String,
    pub(crate) test_plan_id: TestPlanId,
    #[sqlx(try_from = "EnumColumn<TestType>")]
    pub(crate) test_type: i32,
    pub(crate) minimum_duration_in_min: f64,
    pub(crate) missing: Vec<i32>,
}

pub(crate) async fn work(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    reports: &[TestReportId],
) -> Result<Vec<Work>, Fault> {
    let work = sqlx::query_as(
        "select id, test_case_id, test_case_identifier, test_case_name, test_plan_id, test_type,
                minimum_duration_in_min,
                array(
                    select nr from generate_series(1, requested_instances_count) as nr
                    where finished_instances_count = 0 or not exists (
                        select from instance
                        where customer_id = $1 and test_report_id = test_report.id
                          and instance_nr = nr
                    )
                    order by nr
                ) as missing
         from test_report
         where customer_id = $1 and id = any($2)",
    );
    Ok(work.bind(customer).bind(reports).fetch_all(&mut **tx).await?)
}

/// What an engine has to know of an execution that it works for.
#[derive(Debug, FromRow)]
pub(crate) struct Assignment {
    pub(crate) id: ExecutionId,
    pub(crate) is_queued: bool,
    pub(crate) software_version_id: Option<SubjectId>,
    pub(crate) software_version: Option<String>,
    pub(crate) software_name: Option<String>,
    pub(crate) environment_id: Option<EnvironmentId>,
    pub(crate) environment_name: Option<String>,
}

pub(crate) async fn assignments(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    executions: &[ExecutionId],
) -> Result<Vec<Assignment>, Fault> {
    let assignments = sqlx::query_as(
        "select id, status = 'Queued' as is_queued, software_version_id, software_version,
                software_name, environment_id, environment_name
         from execution
         where customer_id = $1 and id = any($2)",
    );
    Ok(assignments.bind(customer).bind(executions).fetch_all(&mut **tx).await?)
}
