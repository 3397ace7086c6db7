//! Executions in PostgreSQL. Every statement is bound to one customer.

mod insert;
mod open;
pub mod tags;
mod unsettled;
mod waiting;

use assay_proto::{
    CustomerId, ExecutionId, ExecutionStatistic, Fault, InputColumns, ProjectId, UserId,
    execution::{Execution, ExecutionInput},
    name_of,
};
use sqlx::{
    AssertSqlSafe, PgExecutor, PgPool, PgTransaction, Postgres, postgres::PgArguments,
    query::QueryAs,
};

pub use self::{
    insert::{insert, next_id},
    open::{find_open, has_passed, has_upload, prepare_past, prolong, remember_upload},
    unsettled::{IS_LAUNCHED, unsettled},
    waiting::{mark_waited, waiting},
};
use super::rules::MOST_NOTES;
use crate::progress::execution::{ExecutionState, Unreached};

/// The SQLSTATE of a lock that was not acquired within the lock timeout.
const LOCK_NOT_AVAILABLE: &str = "55P03";

/// The executions of test reports, to join `using (customer_id, execution_id)`. Their other columns
/// have names that test reports do not have, so that statements need no prefixes.
pub const OF_REPORTS: &str = "(
        select customer_id, id as execution_id, project_id, test_set_id, test_set_name,
               software_version_id, software_version, software_name, environment_id,
               environment_name, request_time, tags, branch, commit, past_end
        from live_execution
    ) as execution";

/// Reads the states of executions. `rest` selects them.
fn select(rest: &'static str) -> QueryAs<'static, Postgres, ExecutionState, PgArguments> {
    let (columns, statistic) = (Execution::COLUMNS, ExecutionStatistic::COLUMNS);
    let unreached = Unreached::COLUMNS;
    sqlx::query_as(AssertSqlSafe(format!(
        "select {columns}, {statistic}, mode, request_user_id, start_date_time, finish_date_time,
                total_duration_in_sec, baseline, revision, past_end, is_canceled, {unreached},
                has_failed
         from live_execution {rest}"
    )))
}

/// Reads an execution of any project, or of this one.
pub async fn find(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    project: Option<ProjectId>,
    id: ExecutionId,
) -> Result<ExecutionState, Fault> {
    select("where customer_id = $1 and id = $2 and ($3::uuid is null or project_id = $3)")
        .bind(customer)
        .bind(id)
        .bind(project)
        .fetch_optional(db)
        .await?
        .ok_or(Fault::NotFound("execution"))
}

/// Whether the retention time of the results is over.
pub async fn has_expired(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    id: ExecutionId,
) -> Result<bool, Fault> {
    let expired = sqlx::query_scalar(
        "select expired_at is not null from execution where customer_id = $1 and id = $2",
    );
    Ok(expired.bind(customer).bind(id).fetch_one(db).await?)
}

/// Locks and reads an execution of any project, or of this one. Until the transaction ends, no other
/// one changes the execution, its reports or its instances.
pub async fn lock(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    project: impl Into<Option<ProjectId>>,
    id: ExecutionId,
) -> Result<ExecutionState, Fault> {
    let of_project =
        "where customer_id = $1 and id = $2 and ($3::uuid is null or project_id = $3) for update";
    let locked = select(of_project)
        .bind(customer)
        .bind(id)
        .bind(project.into())
        .fetch_optional(&mut **tx)
        .await;
    match locked {
        Ok(state) => state.ok_or(Fault::NotFound("execution")),
        Err(error) if is_lock_timeout(&error) => {
            Err(Fault::Busy(std::time::Duration::from_secs(1)))
        }
        Err(error) => Err(error.into()),
    }
}

fn is_lock_timeout(error: &sqlx::Error) -> bool {
    let code = error.as_database_error().and_then(sqlx::error::DatabaseError::code);
    code.is_some_and(|code| code == LOCK_NOT_AVAILABLE)
}

/// Writes the fields of a locked execution that clients change.
pub async fn update(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    id: ExecutionId,
    execution: &ExecutionInput,
) -> Result<(), Fault> {
    let assignments = ExecutionInput::assignments(3);
    let update = sqlx::query_as::<_, ()>(AssertSqlSafe(format!(
        "update execution set {assignments}, revision = revision + 1
         where customer_id = $1 and id = $2
         returning id"
    )));
    execution.bind(update.bind(customer).bind(id)).fetch_one(&mut **tx).await?;
    Ok(())
}

/// Adds notes on the reports of a locked or new execution, as far as there is room.
pub async fn add_notes(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    id: ExecutionId,
    notes: &[String],
) -> Result<(), Fault> {
    if notes.is_empty() {
        return Ok(());
    }
    let add = sqlx::query(
        "update execution set notes = (notes || $3)[:$4] where customer_id = $1 and id = $2",
    );
    add.bind(customer)
        .bind(id)
        .bind(notes)
        .bind(i32::try_from(MOST_NOTES).unwrap_or(i32::MAX))
        .execute(&mut **tx)
        .await?;
    Ok(())
}

/// Stores the state of a locked execution.
pub async fn save(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    state: &mut ExecutionState,
) -> Result<(), Fault> {
    state.revision += 1;
    let (execution, statistic) = (&state.execution, &state.statistic);
    sqlx::query(
        "update execution
         set status = $3, result = $4, test_cases_pending = $5, test_cases_canceled = $6,
             test_cases_aborted = $7, test_cases_with_error = $8, test_cases_passed = $9,
             test_cases_failed = $10, start_date_time = $11, finish_date_time = $12,
             total_duration_in_sec = $13, revision = $14, test_cases_total = $15, is_canceled = $16,
             has_failed = $17, missing_reporters = $18, stopped_test_cases = $19,
             deadline = case when is_open
                 then least(last_deadline, now() + make_interval(secs => grace_in_sec))
                 else deadline end,
             completion_date_time = case when $3 in ('Completed', 'Canceled')
                 then coalesce(completion_date_time, past_end, now()) end
         where customer_id = $1 and id = $2::uuid",
    )
    .bind(customer)
    .bind(&execution.id)
    .bind(name_of(execution.status()))
    .bind(name_of(execution.result()))
    .bind(statistic.test_cases_pending)
    .bind(statistic.test_cases_canceled)
    .bind(statistic.test_cases_aborted)
    .bind(statistic.test_cases_with_error)
    .bind(statistic.test_cases_passed)
    .bind(statistic.test_cases_failed)
    .bind(state.start_date_time)
    .bind(state.finish_date_time)
    .bind(state.total_duration_in_sec)
    .bind(state.revision)
    .bind(statistic.test_cases_total)
    .bind(state.is_canceled)
    .bind(state.has_failed)
    .bind(state.unreached.missing_reporters)
    .bind(state.unreached.stopped_test_cases)
    .execute(&mut **tx)
    .await?;
    Ok(())
}

/// Stores the tags and the origin of a locked execution.
pub async fn relabel(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    state: &mut ExecutionState,
) -> Result<(), Fault> {
    state.revision += 1;
    let execution = &state.execution;
    sqlx::query(
        "update execution set tags = $3, branch = $4, commit = $5, build = $6, revision = $7
         where customer_id = $1 and id = $2::uuid",
    )
    .bind(customer)
    .bind(&execution.id)
    .bind(&execution.tags)
    .bind(&execution.branch)
    .bind(&execution.commit)
    .bind(&execution.build)
    .bind(state.revision)
    .execute(&mut **tx)
    .await?;
    let id = ExecutionId::from_record(&execution.id)?;
    let project = ProjectId::from_record(&execution.project_id)?;
    tags::replace(tx, customer, project, id, &execution.tags).await
}

/// Finds the execution that a user has started with this idempotency key, with the request. The key of
/// an execution that was deleted with its project is free again.
pub async fn find_by_key(
    db: &PgPool,
    customer: CustomerId,
    user: UserId,
    key: &str,
) -> Result<Option<(ExecutionId, Vec<u8>)>, Fault> {
    let found = sqlx::query_as(
        "select id, idempotent_request from live_execution
         where customer_id = $1 and request_user_id = $2 and idempotency_key = $3",
    );
    let found = found.bind(customer).bind(user).bind(key).fetch_optional(db).await?;
    if found.is_none() {
        let release = sqlx::query(
            "update execution e set idempotency_key = null, idempotent_request = null
             where customer_id = $1 and request_user_id = $2 and idempotency_key = $3
               and not exists (
                   select from live_execution l where l.customer_id = $1 and l.id = e.id
               )",
        );
        release.bind(customer).bind(user).bind(key).execute(db).await?;
    }
    Ok(found)
}

/// Locks and reads an execution like [`lock`], unless another transaction has locked it.
pub async fn try_lock(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    id: ExecutionId,
) -> Result<Option<ExecutionState>, Fault> {
    let locked = select("where customer_id = $1 and id = $2 for update skip locked");
    Ok(locked.bind(customer).bind(id).fetch_optional(&mut **tx).await?)
}

/// Whether the deadline of an execution has passed, unless a launch ends it.
pub async fn is_overdue(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    id: ExecutionId,
) -> Result<bool, Fault> {
    let overdue = sqlx::query_scalar(AssertSqlSafe(format!(
        "select coalesce(deadline <= now(), false) and not {IS_LAUNCHED} from execution e
         where customer_id = $1 and id = $2"
    )));
    Ok(overdue.bind(customer).bind(id).fetch_one(&mut **tx).await?)
}
