//! The alarms of monitors, and what they have done, in PostgreSQL. Every statement is bound to one customer.

use assay_proto::{
    CustomerId, ExecutionId, Fault, MonitorId, ProjectId, TestCaseId, Timestamp,
    catalog::TestCaseName, execution::MonitorActionKind, name_of,
};
use sqlx::PgTransaction;

/// Maximum number of actions of a monitor that are kept.
const MOST: i64 = 10_000;

/// Raises an alarm after an execution, until a time.
pub(super) async fn raise(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    monitor: MonitorId,
    case: TestCaseId,
    (execution, until): (ExecutionId, Timestamp),
) -> Result<(), Fault> {
    let raise = sqlx::query(
        "insert into monitor_alarm
             (customer_id, monitor_id, test_case_id, raised_by_id, raised_until)
         values ($1, $2, $3, $4, $5)
         on conflict on constraint monitor_alarm_pkey do update
         set raised_by_id = excluded.raised_by_id, raised_until = excluded.raised_until,
             changed_at = now()",
    );
    let raise = raise.bind(customer).bind(monitor).bind(case).bind(execution).bind(until);
    raise.execute(&mut **tx).await?;
    Ok(())
}

/// Ends an alarm. Runs until the execution with which the test case has recovered do not count any more.
pub(super) async fn end(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    monitor: MonitorId,
    case: TestCaseId,
    recovered_with: Option<ExecutionId>,
) -> Result<(), Fault> {
    let end = sqlx::query(
        "update monitor_alarm
         set raised_until = null, recovered_with_id = coalesce($4, recovered_with_id),
             changed_at = now()
         where customer_id = $1 and monitor_id = $2 and test_case_id = $3",
    );
    end.bind(customer).bind(monitor).bind(case).bind(recovered_with).execute(&mut **tx).await?;
    Ok(())
}

/// Forgets the alarms of a monitor, so that it begins again, except those of test cases that it has muted or skipped:
/// it lifts that when they have recovered.
pub(super) async fn forget(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    project: ProjectId,
    monitor: MonitorId,
) -> Result<(), Fault> {
    let forget = sqlx::query(
        "delete from monitor_alarm a
         where a.customer_id = $1 and a.monitor_id = $3 and not exists (
             select from test_case_state s
             where s.customer_id = $1 and s.project_id = $2 and s.test_case_id = a.test_case_id
               and s.monitor_id = $3 and s.until > now()
         )",
    );
    forget.bind(customer).bind(project).bind(monitor).execute(&mut **tx).await?;
    Ok(())
}

/// An action of a monitor on a test case, after an execution.
pub(super) struct Taken<'a> {
    pub(super) monitor: MonitorId,
    pub(super) execution: ExecutionId,
    pub(super) case: TestCaseId,
    pub(super) called: &'a TestCaseName,
    pub(super) action: MonitorActionKind,
    pub(super) reason: &'a str,
    pub(super) is_dry: bool,
}

/// Records an action.
pub(super) async fn record(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    taken: &Taken<'_>,
) -> Result<(), Fault> {
    sqlx::query(
        "insert into monitor_action (customer_id, id, monitor_id, execution_id, test_case_id,
             test_case_identifier, test_case_name, action, reason, is_dry)
         values ($1, next_id(null), $2, $3, $4, $5, $6, $7, $8, $9)",
    )
    .bind(customer)
    .bind(taken.monitor)
    .bind(taken.execution)
    .bind(taken.case)
    .bind(&taken.called.identifier)
    .bind(&taken.called.name)
    .bind(name_of(taken.action))
    .bind(taken.reason)
    .bind(taken.is_dry)
    .execute(&mut **tx)
    .await?;
    Ok(())
}

/// Removes the oldest actions of a monitor that has too many.
pub(super) async fn trim(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    monitor: MonitorId,
) -> Result<(), Fault> {
    let trim = sqlx::query(
        "delete from monitor_action
         where customer_id = $1 and monitor_id = $2 and id <= (
             select id from monitor_action
             where customer_id = $1 and monitor_id = $2
             order by id desc
             offset $3
             limit 1
         )",
    );
    trim.bind(customer).bind(monitor).bind(MOST).execute(&mut **tx).await?;
    Ok(())
}
