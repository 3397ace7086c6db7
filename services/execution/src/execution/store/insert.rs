//! New executions.

use assay_auth::Caller;
use assay_proto::{CustomerId, ExecutionId, Fault, OnConstraint, ProjectId, TestSetId, name_of};
use sqlx::{PgExecutor, PgTransaction, types::Json};

use super::tags;
use crate::{
    change, deletion, execution::rules::IdempotentRequest, progress::execution::ExecutionState,
};

/// Returns the id of a new execution, which is larger than those of all others of its test set.
pub(crate) async fn next_id(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    set: TestSetId,
) -> Result<ExecutionId, Fault> {
    let next = sqlx::query_scalar(
        "select next_id((
             select id from execution where customer_id = $1 and test_set_id = $2
             order by id desc
             limit 1
         ))",
    );
    Ok(next.bind(customer).bind(set).fetch_one(db).await?)
}

/// Inserts an execution that is requested now, unless it is one of the past, and returns its id. If
/// it has ended, it ends now.
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
    let baseline = change::baseline(tx, caller.customer, state).await?;
    let (id, request_time) = sqlx::query_as(
        "insert into execution (customer_id, id, project_id, test_set_id, test_set_name,
             software_version_id, software_version, software_name, environment_id,
             environment_name, request_user_id, request_user, tags, mode, stop_on_failure,
             time_out, status, result, completion_date_time, test_cases_total,
             test_cases_pending, test_cases_canceled, test_cases_aborted, test_cases_with_error,
             test_cases_passed, test_cases_failed, start_date_time, finish_date_time,
             total_duration_in_sec, revision, idempotency_key, idempotent_request, branch, commit,
             build, ci_url, is_open, key, reporters, grace_in_sec, baseline, gate,
             past_end, request_time, last_deadline, deadline)
         values ($1, $2::uuid, $3::uuid, $4::uuid, $5, $6::uuid, $7, $8, $9::uuid, $10, $11, $12,
             $13, $14, $15, $16, $17, $18, case when $17 in ('Completed', 'Canceled') then now() end,
             $19, $20, $21, $22, $23, $24, $25, $26, $27, $28, $29, $30, $31, $33, $34, $35, $36,
             $37, $38, $39, $40, $41, $42, $43, coalesce($44, now()),
             now() + make_interval(secs => 60 * $32),
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
    .bind(&baseline)
    .bind(Json(&state.gate))
    .bind(state.past_end)
    .bind(execution.request_time)
    .fetch_one(&mut **tx)
    .await
    .on_constraint("execution_idempotency_key_key", Fault::AlreadyExists("execution"))
    .on_constraint("execution_key", Fault::AlreadyExists("execution"))?;
    if !execution.tags.is_empty() {
        tags::insert(tx, caller.customer, project, id, &execution.tags).await?;
    }
    state.baseline = baseline;
    state.execution.request_time = Some(request_time);
    state.statistic.execution_request_time = Some(request_time);
    Ok(id)
}
