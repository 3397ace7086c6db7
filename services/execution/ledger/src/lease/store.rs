//! Leases in PostgreSQL. Every statement is bound to one customer. Ending a lease needs the lock of
//! its execution.

use std::time::Duration;

use assay_auth::Caller;
use assay_proto::{
    CustomerId, EnvironmentId, ExecutionId, Fault, LeaseId, ScheduleId, SubjectId, TestPlanId,
    Timestamp,
    catalog::{AutomatedTestPlan, Environment, Subject},
    execution::Lease,
};
use sqlx::{FromRow, PgExecutor, PgTransaction};

use super::{LeaseStatus, lost};
use crate::{column::column, schedule::Schedule, time_limits::TimeLimits};

#[derive(FromRow)]
struct LeasedSchedule {
    #[sqlx(flatten)]
    schedule: Schedule,
    is_deleted: bool,
}

/// Reads the schedule of a lease. The leases of a deleted project are lost.
pub async fn schedule_of(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    id: LeaseId,
) -> Result<Schedule, Fault> {
    let leased = sqlx::query_as(
        "select s.id, s.execution_id, s.project_id, s.test_report_id, s.target_group,
                s.maximum_duration_in_min, e.id is null as is_deleted
         from lease l
         join schedule s on s.customer_id = l.customer_id and s.id = l.schedule_id
         left join live_execution e on e.customer_id = l.customer_id and e.id = l.execution_id
         where l.customer_id = $1 and l.id = $2",
    );
    let leased: Option<LeasedSchedule> = leased.bind(customer).bind(id).fetch_optional(db).await?;
    let leased = leased.ok_or(Fault::NotFound("lease"))?;
    if leased.is_deleted { Err(lost()) } else { Ok(leased.schedule) }
}

/// Fails if a lease was lost or released.
pub async fn check_not_lost(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    id: LeaseId,
) -> Result<(), Fault> {
    match status(db, customer, id).await?.0 {
        LeaseStatus::Lost | LeaseStatus::Released => Err(lost()),
        LeaseStatus::Held | LeaseStatus::Completed | LeaseStatus::Canceled => Ok(()),
    }
}

/// Fails unless a lease is held.
pub async fn check_held(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    id: LeaseId,
) -> Result<(), Fault> {
    match status(db, customer, id).await?.0 {
        LeaseStatus::Held => Ok(()),
        LeaseStatus::Lost | LeaseStatus::Released => Err(lost()),
        LeaseStatus::Completed | LeaseStatus::Canceled => {
            let reason = "the lease has ended".to_owned();
            Err(Fault::Conflict { code: "lease_ended", reason })
        }
    }
}

/// Reads the status of a lease, and when it expires. It is held until it is ended, also when it has expired.
pub async fn status(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    id: LeaseId,
) -> Result<(LeaseStatus, Timestamp), Fault> {
    let found: Option<(Option<String>, Timestamp)> = sqlx::query_as(
        "select case when exists (
                    select from live_execution e
                    where e.customer_id = $1 and e.id = l.execution_id
                ) then outcome else 'Lost' end,
                expires_at
         from lease l
         where customer_id = $1 and id = $2",
    )
    .bind(customer)
    .bind(id)
    .fetch_optional(db)
    .await?;
    let (outcome, expires_at) = found.ok_or(Fault::NotFound("lease"))?;
    let status = match outcome.as_deref() {
        None => LeaseStatus::Held,
        Some("Completed") => LeaseStatus::Completed,
        Some("Released") => LeaseStatus::Released,
        Some("Canceled") => LeaseStatus::Canceled,
        Some(_) => LeaseStatus::Lost,
    };
    Ok((status, expires_at))
}

/// Inserts a lease on each of the schedules.
pub async fn insert(
    tx: &mut PgTransaction<'_>,
    caller: &Caller,
    engine: &str,
    limits: TimeLimits,
    schedules: &[Schedule],
) -> Result<Vec<LeaseId>, Fault> {
    let patience = |schedule: &Schedule| limits.patience(schedule.maximum_duration_in_min);
    let ids = column(schedules, |_| LeaseId::new());
    let insert = sqlx::query(
        "insert into lease (customer_id, user_id, engine, expires_at, id, schedule_id,
             execution_id, times_out_at)
         select $1, $2, $3, now() + make_interval(secs => $4), id, schedule, execution,
             now() + make_interval(secs => patience)
         from unnest($5::uuid[], $6::uuid[], $7::uuid[], $8::float8[])
             as leased (id, schedule, execution, patience)",
    );
    insert
        .bind(caller.customer)
        .bind(caller.user)
        .bind(engine)
        .bind(limits.lease().as_secs_f64())
        .bind(&ids)
        .bind(column(schedules, |schedule| schedule.id))
        .bind(column(schedules, |schedule| schedule.execution_id))
        .bind(column(schedules, |schedule| patience(schedule).as_secs_f64()))
        .execute(&mut **tx)
        .await?;
    Ok(ids)
}

/// A lease with the references to the records of the catalog that its engine needs.
#[derive(FromRow)]
struct LeaseRow {
    #[sqlx(flatten)]
    lease: Lease,
    test_plan_id: TestPlanId,
    software_version_id: Option<SubjectId>,
    software_version: Option<String>,
    software_name: Option<String>,
    environment_id: Option<EnvironmentId>,
    environment_name: Option<String>,
}

impl LeaseRow {
    fn into_lease(self) -> Lease {
        let subject = self.software_version_id.map(|id| Subject {
            id: id.to_string(),
            identifier: self.software_version.unwrap_or_default(),
            name: self.software_name.unwrap_or_default(),
            ..Subject::default()
        });
        let environment = self.environment_id.map(|id| Environment {
            id: id.to_string(),
            name: self.environment_name.unwrap_or_default(),
            ..Environment::default()
        });
        let test_plan =
            AutomatedTestPlan { id: self.test_plan_id.to_string(), ..AutomatedTestPlan::default() };
        Lease { test_plan: Some(test_plan), subject, environment, ..self.lease }
    }
}

/// Reads leases in the order of the queue. Their plan, subject and environment have only an id and
/// the names of when the execution started.
pub async fn leases(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    limits: TimeLimits,
    ids: &[LeaseId],
) -> Result<Vec<Lease>, Fault> {
    let leases: Vec<LeaseRow> = sqlx::query_as(
        "select l.id, l.expires_at, l.schedule_id, l.execution_id, s.project_id, s.test_report_id,
                r.test_type, r.minimum_duration_in_min, s.maximum_duration_in_min, r.test_plan_id,
                array(
                    select nr from generate_series(1, r.requested_instances_count) as nr
                    where r.finished_instances_count = 0 or not exists (
                        select from instance
                        where customer_id = $1 and test_report_id = r.id and instance_nr = nr
                    )
                    order by nr
                ) as instance_numbers,
                jsonb_build_object('Id', r.test_case_id, 'Identifier', r.test_case_identifier,
                    'Name', r.test_case_name) as test_case,
                e.software_version_id, e.software_version, e.software_name, e.environment_id,
                e.environment_name
         from lease l
         join schedule s on s.customer_id = l.customer_id and s.id = l.schedule_id
         join test_report r on r.customer_id = s.customer_id and r.id = s.test_report_id
         join execution e on e.customer_id = l.customer_id and e.id = l.execution_id
         where l.customer_id = $1 and l.id = any($2)
         order by s.priority desc, s.id",
    )
    .bind(customer)
    .bind(ids)
    .fetch_all(&mut **tx)
    .await?;
    let with_limit = |row: LeaseRow| {
        let lease = row.into_lease();
        let minutes = limits.test_in_min(lease.maximum_duration_in_min);
        Lease { maximum_duration_in_min: minutes, ..lease }
    };
    Ok(leases.into_iter().map(with_limit).collect())
}

/// Renews a lease that is held. Returns when it expires and whether its engine is to continue. A lease that expires at
/// the same time is renewed or lost: both lock its row.
pub async fn renew(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    id: LeaseId,
    duration: Duration,
) -> Result<Option<(Timestamp, bool)>, Fault> {
    let renewed = sqlx::query_as(
        "update lease set expires_at = now() + make_interval(secs => $3)
         where customer_id = $1 and id = $2 and ended_at is null
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
    Ok(renewed.bind(customer).bind(id).bind(duration.as_secs_f64()).fetch_optional(db).await?)
}

/// Ends a lease that is held.
pub async fn end(
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

/// Cancels the leases of an execution.
pub async fn cancel_all(
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

/// Ends the expired leases of an execution, and returns their schedules.
pub async fn expire(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    execution: ExecutionId,
) -> Result<Vec<ScheduleId>, Fault> {
    let expired = sqlx::query_scalar(
        "update lease set ended_at = now(), outcome = 'Lost'
         where customer_id = $1 and execution_id = $2 and ended_at is null
           and expires_at <= clock_timestamp()
         returning schedule_id",
    );
    Ok(expired.bind(customer).bind(execution).fetch_all(&mut **tx).await?)
}

/// Counts the leases that engines of all customers hold.
pub async fn count_held(db: impl PgExecutor<'_>) -> Result<f64, Fault> {
    let held = sqlx::query_scalar("select count(*)::float8 from lease where ended_at is null");
    Ok(held.fetch_one(db).await?)
}
