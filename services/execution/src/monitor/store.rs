//! Monitors and their actions in PostgreSQL. Every statement is bound to one customer, apart from those of
//! tasks.

use std::time::Instant;

use assay_auth::Caller;
use assay_fair::Throttle;
use assay_proto::{
    CustomerId, ExecutionId, Fault, InputColumns, MonitorId, ProjectId, Timestamp,
    execution::{Monitor, MonitorAction, MonitorInput},
};
use assay_rpc::list::{Rows, Slice};
use sqlx::{
    AssertSqlSafe, FromRow, PgExecutor, PgPool, PgTransaction, Postgres, postgres::PgArguments,
    query::QueryAs,
};

use super::rules::MOST;

/// Number of days for which actions are kept.
const DAYS: i32 = 90;

/// Number of days for which a state lasts that a monitor sets.
pub(super) const DAYS_OF_STATE: i32 = 30;

/// Facts about an ended execution that monitors depend on.
#[derive(FromRow)]
pub(super) struct Facts {
    pub(super) is_of_default_branch: bool,
    /// Whether its results are those of another execution.
    pub(super) is_merged: bool,
    /// Number of test cases whose failures are muted.
    pub(super) muted: i32,
    /// The time at which a state ends that is set now.
    pub(super) until: Timestamp,
}

/// Reads the facts about an execution.
pub(super) async fn facts(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    execution: ExecutionId,
) -> Result<Facts, Fault> {
    let facts = sqlx::query_as(
        "select is_of_default_branch, is_merged, now() + make_interval(days => $3) as until, (
             select count(*)::int from test_report
             where customer_id = $1 and execution_id = $2 and change <> 'None' and is_muted
         ) as muted
         from execution
         where customer_id = $1 and id = $2",
    );
    let facts = facts.bind(customer).bind(execution).bind(DAYS_OF_STATE);
    Ok(facts.fetch_one(&mut **tx).await?)
}

fn select(rest: &'static str) -> QueryAs<'static, Postgres, Monitor, PgArguments> {
    let columns = Monitor::COLUMNS;
    sqlx::query_as(AssertSqlSafe(format!(
        "select {columns} from monitor where customer_id = $1 and project_id = $2 {rest}"
    )))
}

/// Lists the monitors of a project, newest first.
pub(super) async fn list(
    db: &PgPool,
    customer: CustomerId,
    project: ProjectId,
    slice: &Slice,
) -> Result<Rows<Monitor>, Fault> {
    let monitors = select(
        "and id < $3 and ($4::text is null or name ilike $4)
         order by id desc
         limit $5",
    );
    let monitors = monitors
        .bind(customer)
        .bind(project)
        .bind(slice.before()?)
        .bind(slice.pattern.as_deref())
        .bind(slice.limit);
    slice.read(monitors.fetch(db)).await
}

/// Returns all monitors of a project, the oldest first.
pub(super) async fn of_project(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    project: ProjectId,
) -> Result<Vec<Monitor>, Fault> {
    let monitors = select("order by id").bind(customer).bind(project);
    Ok(monitors.fetch_all(&mut **tx).await?)
}

pub(super) async fn get(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    project: ProjectId,
    id: MonitorId,
) -> Result<Monitor, Fault> {
    let monitor = select("and id = $3").bind(customer).bind(project).bind(id);
    monitor.fetch_optional(db).await?.ok_or(Fault::NotFound("monitor"))
}

pub(super) async fn lock(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    project: ProjectId,
    id: MonitorId,
) -> Result<Monitor, Fault> {
    let monitor = select("and id = $3 for update").bind(customer).bind(project).bind(id);
    monitor.fetch_optional(&mut **tx).await?.ok_or(Fault::NotFound("monitor"))
}

/// Stores a monitor of a caller. Fails if the project has too many.
pub(super) async fn insert(
    tx: &mut PgTransaction<'_>,
    caller: &Caller,
    project: ProjectId,
    monitor: &MonitorInput,
) -> Result<Monitor, Fault> {
    let (columns, values) = (MonitorInput::COLUMNS, MonitorInput::values(5));
    let returned = Monitor::COLUMNS;
    let insert = sqlx::query_as(AssertSqlSafe(format!(
        "insert into monitor (customer_id, project_id, id, created_by_id, created_by, {columns})
         values ($1, $2, next_id(null), $3, $4, {values})
         returning {returned}"
    )));
    let insert = insert.bind(caller.customer).bind(project);
    let insert = monitor.bind(insert.bind(caller.user).bind(&*caller.name));
    let inserted = insert.fetch_one(&mut **tx).await?;
    check_number(tx, caller.customer, project).await?;
    Ok(inserted)
}

async fn check_number(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    project: ProjectId,
) -> Result<(), Fault> {
    let count = sqlx::query_scalar(
        "select count(*) from monitor where customer_id = $1 and project_id = $2",
    );
    let count: i64 = count.bind(customer).bind(project).fetch_one(&mut **tx).await?;
    if count <= MOST {
        return Ok(());
    }
    let reason = format!("a project may have {MOST} monitors: delete or change some");
    Err(Fault::Refused { code: "too_many_monitors", reason })
}

/// Writes the fields of a locked monitor.
pub(super) async fn update(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    project: ProjectId,
    id: MonitorId,
    monitor: &MonitorInput,
) -> Result<Monitor, Fault> {
    let (assignments, returned) = (MonitorInput::assignments(4), Monitor::COLUMNS);
    let update = sqlx::query_as(AssertSqlSafe(format!(
        "update monitor set {assignments}, revision = revision + 1
         where customer_id = $1 and project_id = $2 and id = $3
         returning {returned}"
    )));
    let update = monitor.bind(update.bind(customer).bind(project).bind(id));
    Ok(update.fetch_one(&mut **tx).await?)
}

/// Deletes a monitor, with its alarms and actions.
pub(super) async fn delete(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    project: ProjectId,
    id: MonitorId,
) -> Result<(), Fault> {
    let delete =
        sqlx::query("delete from monitor where customer_id = $1 and project_id = $2 and id = $3");
    let done = delete.bind(customer).bind(project).bind(id).execute(&mut **tx).await?;
    if done.rows_affected() == 0 { Err(Fault::NotFound("monitor")) } else { Ok(()) }
}

/// Lists the actions of a monitor, newest first.
pub(super) async fn actions(
    db: &PgPool,
    customer: CustomerId,
    id: MonitorId,
    slice: &Slice,
) -> Result<Rows<MonitorAction>, Fault> {
    let columns = MonitorAction::COLUMNS;
    let actions = sqlx::query_as(AssertSqlSafe(format!(
        "select {columns} from monitor_action
         where customer_id = $1 and monitor_id = $2 and id < $3
           and ($4::text is null
                or test_case_identifier ilike $4 or test_case_name ilike $4)
         order by id desc
         limit $5"
    )));
    let actions = actions
        .bind(customer)
        .bind(id)
        .bind(slice.before()?)
        .bind(slice.pattern.as_deref())
        .bind(slice.limit);
    slice.read(actions.fetch(db)).await
}

/// Remembers that an execution has ended, if its project has monitors.
pub(crate) async fn enqueue(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    execution: ExecutionId,
) -> Result<(), Fault> {
    let enqueue = sqlx::query(
        "insert into monitor_evaluation (customer_id, execution_id)
         select $1, $2 from execution e
         where e.customer_id = $1 and e.id = $2 and exists (
             select from monitor m where m.customer_id = $1 and m.project_id = e.project_id
         )
         on conflict on constraint monitor_evaluation_pkey do nothing",
    );
    enqueue.bind(customer).bind(execution).execute(&mut **tx).await?;
    Ok(())
}

/// Removes old actions, and alarms that nothing has changed for as long, of all customers.
pub(crate) async fn remove_old(db: &PgPool, throttle: &mut Throttle) -> Result<(), Fault> {
    for statement in [
        "delete from monitor_action
         where ctid = any(array(
             select ctid from monitor_action
             where \"time\" < now() - make_interval(days => $1)
             limit $2
         ))",
        "delete from monitor_alarm
         where ctid = any(array(
             select ctid from monitor_alarm
             where changed_at < now() - make_interval(days => $1)
             limit $2
         ))",
    ] {
        loop {
            let (begun, batch) = (Instant::now(), throttle.batch_size());
            let removed = sqlx::query(statement).bind(DAYS).bind(batch).execute(db).await?;
            if removed.rows_affected() < batch.unsigned_abs() {
                break;
            }
            throttle.pause(begun.elapsed()).await;
        }
    }
    Ok(())
}
