//! Executions in PostgreSQL. Every statement is bound to one customer.

use assay_auth::Caller;
use assay_proto::{
    CustomerId, ExecutionId, ExecutionStatistic, Fault, InputColumns, OnConstraint, ProjectId,
    TestSetId, UserId,
    execution::{Execution, ExecutionInput},
    name_of,
};
use sqlx::{
    AssertSqlSafe, PgExecutor, PgTransaction, Postgres, postgres::PgArguments, query::QueryAs,
};

use super::rules::IdempotentRequest;
use crate::{deletion, progress::execution::ExecutionState};

/// The SQLSTATE of a lock that was not acquired within the lock timeout.
const LOCK_NOT_AVAILABLE: &str = "55P03";

/// The executions of test reports, to join `using (customer_id, execution_id)`. Their other columns
/// have names that test reports do not have, so that statements need no prefixes.
pub(crate) const OF_REPORTS: &str = "(
        select customer_id, id as execution_id, project_id, test_set_id, software_version_id,
               software_version, software_name, environment_id, environment_name, request_time, tags
        from live_execution
    ) as execution";

/// Reads the states of executions. `rest` selects them.
fn select(rest: &'static str) -> QueryAs<'static, Postgres, ExecutionState, PgArguments> {
    let (columns, statistic) = (Execution::COLUMNS, ExecutionStatistic::COLUMNS);
    sqlx::query_as(AssertSqlSafe(format!(
        "select {columns}, {statistic}, mode, request_user_id, start_date_time, finish_date_time,
                total_duration_in_sec, revision
         from live_execution {rest}"
    )))
}

pub(crate) async fn get(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    project: ProjectId,
    id: ExecutionId,
) -> Result<ExecutionState, Fault> {
    select("where customer_id = $1 and project_id = $2 and id = $3")
        .bind(customer)
        .bind(project)
        .bind(id)
        .fetch_optional(db)
        .await?
        .ok_or(Fault::NotFound("execution"))
}

/// Whether the retention time of the results is over.
pub(crate) async fn has_expired(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    id: ExecutionId,
) -> Result<bool, Fault> {
    let expired = sqlx::query_scalar(
        "select expired_at is not null from execution where customer_id = $1 and id = $2",
    );
    Ok(expired.bind(customer).bind(id).fetch_one(db).await?)
}

/// Locks and reads an execution. Until the transaction ends, no other one changes the execution,
/// its reports or its instances.
pub(crate) async fn lock(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    project: ProjectId,
    id: ExecutionId,
) -> Result<ExecutionState, Fault> {
    let locked = select("where customer_id = $1 and project_id = $2 and id = $3 for update")
        .bind(customer)
        .bind(project)
        .bind(id)
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

/// Inserts an execution that is requested now, and returns its id. If it has ended, it ends now.
pub(crate) async fn insert(
    tx: &mut PgTransaction<'_>,
    caller: &Caller,
    state: &mut ExecutionState,
    idempotent: Option<&IdempotentRequest>,
) -> Result<ExecutionId, Fault> {
    let (execution, statistic) = (&state.execution, &state.statistic);
    let project = ProjectId::from_path(&execution.project_id)?;
    if deletion::store::is_deleted(&mut **tx, caller.customer, project).await? {
        return Err(Fault::NotFound("project"));
    }
    let (id, request_time) = sqlx::query_as(
        "insert into execution (customer_id, id, project_id, test_set_id, test_set_name,
             software_version_id, software_version, software_name, environment_id,
             environment_name, request_user_id, request_user, tags, mode, stop_on_failure,
             time_out, status, result, completion_date_time, test_cases_total,
             test_cases_pending, test_cases_canceled, test_cases_aborted, test_cases_with_error,
             test_cases_passed, test_cases_failed, start_date_time, finish_date_time,
             total_duration_in_sec, revision, idempotency_key, idempotent_request, branch, commit,
             build, ci_url, is_open, key, reporters, grace_in_sec, last_deadline, deadline)
         values ($1, $2::uuid, $3::uuid, $4::uuid, $5, $6::uuid, $7, $8, $9::uuid, $10, $11, $12,
             $13, $14, $15, $16, $17, $18, case when $17 in ('Completed', 'Canceled') then now() end,
             $19, $20, $21, $22, $23, $24, $25, $26, $27, $28, $29, $30, $31, $33, $34, $35, $36,
             $37, $38, $39, $40, now() + make_interval(secs => 60 * $32),
             now() + make_interval(secs => least(60 * $32, $40::int)))
         returning id, request_time",
    )
    .bind(caller.customer)
    .bind(&execution.id)
    .bind(&execution.project_id)
    .bind(&execution.test_set_id)
    .bind(&execution.test_set_name)
    .bind(&execution.software_version_id)
    .bind(&execution.software_version)
    .bind(&execution.software_name)
    .bind(&execution.environment_id)
    .bind(&execution.environment_name)
    .bind(caller.user)
    .bind(&execution.request_user)
    .bind(&execution.tags)
    .bind(name_of(state.mode()))
    .bind(execution.stop_on_failure)
    .bind(execution.time_out)
    .bind(name_of(execution.status()))
    .bind(name_of(execution.result()))
    .bind(statistic.test_cases_total)
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
    .bind(idempotent.map(|idempotent| &idempotent.key))
    .bind(idempotent.map(|idempotent| &idempotent.request))
    .bind(state.deadline_in_min)
    .bind(&execution.branch)
    .bind(&execution.commit)
    .bind(&execution.build)
    .bind(&execution.ci_url)
    .bind(execution.is_open)
    .bind(&execution.key)
    .bind(execution.reporters)
    .bind(execution.grace_in_sec)
    .fetch_one(&mut **tx)
    .await
    .on_constraint("execution_idempotency_key_key", Fault::AlreadyExists("execution"))
    .on_constraint("execution_key", Fault::AlreadyExists("execution"))?;
    if !execution.tags.is_empty() {
        insert_tags(tx, caller.customer, project, id, &execution.tags).await?;
    }
    state.execution.request_time = Some(request_time);
    state.statistic.execution_request_time = Some(request_time);
    Ok(id)
}

/// Inserts the tags of a new execution, which are separated by commas.
async fn insert_tags(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    project: ProjectId,
    id: ExecutionId,
    tags: &str,
) -> Result<(), Fault> {
    let insert = sqlx::query(
        "insert into execution_tag (customer_id, project_id, tag, execution_id)
         select distinct $1::uuid, $2::uuid, btrim(tag), $3::uuid
         from unnest(string_to_array($4, ',')) as tag
         where btrim(tag) <> ''",
    );
    insert.bind(customer).bind(project).bind(id).bind(tags).execute(&mut **tx).await?;
    Ok(())
}

/// Writes the fields of a locked execution that clients change.
pub(crate) async fn update(
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

/// Stores the state of a locked execution.
pub(crate) async fn save(
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
             total_duration_in_sec = $13, revision = $14, test_cases_total = $15,
             deadline = case when is_open
                 then least(last_deadline, now() + make_interval(secs => grace_in_sec))
                 else deadline end,
             completion_date_time = case when $3 in ('Completed', 'Canceled')
                 then coalesce(completion_date_time, now()) end
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
    .execute(&mut **tx)
    .await?;
    Ok(())
}

/// Finds the execution that a user has started with this idempotency key, with the request.
pub(crate) async fn find_by_key(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    user: UserId,
    key: &str,
) -> Result<Option<(ExecutionId, Vec<u8>)>, Fault> {
    let found = sqlx::query_as(
        "select id, idempotent_request from execution
         where customer_id = $1 and request_user_id = $2 and idempotency_key = $3",
    );
    Ok(found.bind(customer).bind(user).bind(key).fetch_optional(db).await?)
}

/// Finds the open execution of a test set with this key.
pub(super) async fn find_open(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    set: TestSetId,
    key: &str,
) -> Result<Option<ExecutionId>, Fault> {
    let found = sqlx::query_scalar(
        "select id from live_execution where customer_id = $1 and test_set_id = $2 and key = $3",
    );
    Ok(found.bind(customer).bind(set).bind(key).fetch_optional(db).await?)
}

/// Begins the grace period of a locked open execution again.
pub(super) async fn prolong(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    id: ExecutionId,
) -> Result<(), Fault> {
    let prolong = sqlx::query(
        "update execution
         set deadline = least(last_deadline, now() + make_interval(secs => grace_in_sec))
         where customer_id = $1 and id = $2 and is_open",
    );
    prolong.bind(customer).bind(id).execute(&mut **tx).await?;
    Ok(())
}

/// Remembers that a report was uploaded to a locked execution. Returns whether it is the first time.
pub(crate) async fn remember_upload(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    id: ExecutionId,
    digest: &[u8],
) -> Result<bool, Fault> {
    let remember = sqlx::query(
        "insert into upload (customer_id, execution_id, digest) values ($1, $2, $3)
         on conflict on constraint upload_pkey do nothing",
    );
    let done = remember.bind(customer).bind(id).bind(digest).execute(&mut **tx).await?;
    Ok(done.rows_affected() == 1)
}

/// Returns whether a report with this digest was uploaded to an execution before.
pub(crate) async fn has_upload(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    id: ExecutionId,
    digest: &[u8],
) -> Result<bool, Fault> {
    let exists = sqlx::query_scalar(
        "select exists (
             select from upload where customer_id = $1 and execution_id = $2 and digest = $3
         )",
    );
    Ok(exists.bind(customer).bind(id).bind(digest).fetch_one(db).await?)
}

/// Lists executions of all customers that need the reconciler: a lease has expired, the deadline
/// has passed, or every report has ended but not the execution.
pub(crate) async fn unsettled(
    db: impl PgExecutor<'_>,
    limit: i64,
) -> Result<Vec<(CustomerId, ExecutionId)>, Fault> {
    let executions = sqlx::query_as(
        "(select customer_id, execution_id from lease l
          where ended_at is null and expires_at <= now() and exists (
              select from live_execution e
              where e.customer_id = l.customer_id and e.id = l.execution_id
          )
          order by expires_at limit $1)
         union
         (select customer_id, id from live_execution
          where status in ('Queued', 'Running') and deadline <= now() order by deadline limit $1)
         union
         (select customer_id, id from live_execution
          where status in ('Queued', 'Running') and mode = 'Dispatch' and test_cases_pending = 0
          order by id limit $1)",
    );
    Ok(executions.bind(limit).fetch_all(db).await?)
}

/// Locks and reads an execution like [`lock`], unless another transaction has locked it.
pub(crate) async fn try_lock(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    id: ExecutionId,
) -> Result<Option<ExecutionState>, Fault> {
    let locked = select("where customer_id = $1 and id = $2 for update skip locked");
    Ok(locked.bind(customer).bind(id).fetch_optional(&mut **tx).await?)
}

/// Whether the deadline of an execution has passed.
pub(crate) async fn is_overdue(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    id: ExecutionId,
) -> Result<bool, Fault> {
    let overdue = sqlx::query_scalar(
        "select coalesce(deadline <= now(), false) from execution
         where customer_id = $1 and id = $2",
    );
    Ok(overdue.bind(customer).bind(id).fetch_one(&mut **tx).await?)
}

/// Lists those of the executions that have not begun, with their projects.
pub(crate) async fn queued(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    ids: &[&str],
) -> Result<Vec<(ProjectId, ExecutionId)>, Fault> {
    let queued = sqlx::query_as(
        "select project_id, id from execution
         where customer_id = $1 and id = any($2::text[]::uuid[]) and status = 'Queued'
         order by id",
    );
    Ok(queued.bind(customer).bind(ids).fetch_all(db).await?)
}
