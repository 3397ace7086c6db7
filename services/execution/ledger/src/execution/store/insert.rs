//! New executions.

use assay_auth::Caller;
use assay_proto::{
    CustomerId, ExecutionId, ExecutionStatus, Fault, OnConstraint, ProjectId, TestSetId, name_of,
};
use sqlx::{FromRow, PgExecutor, PgTransaction, types::Json};

use super::tags;
use crate::{
    change, deletion, execution::rules::IdempotentRequest, insertion::Insertion,
    progress::execution::ExecutionState,
};

/// Returns the id of a new execution, which is larger than those of all others of its test set.
pub async fn next_id(
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

/// Inserts an execution, and returns its id. The database sets the time of its request, except for a
/// backdated execution, and the time of its end if it has ended already.
pub async fn insert(
    tx: &mut PgTransaction<'_>,
    caller: &Caller,
    state: &mut ExecutionState,
    idempotent: Option<&IdempotentRequest>,
) -> Result<ExecutionId, Fault> {
    let execution = &state.execution;
    let project = ProjectId::from_record(&execution.project_id)?;
    if deletion::store::is_deleted(&mut **tx, caller.customer, project).await? {
        return Err(Fault::NotFound("project"));
    }
    let baseline = change::baseline(tx, caller.customer, state).await?;
    let mut row = Insertion::into("execution");
    row.set("customer_id", caller.customer);
    row.set("request_user_id", caller.user);
    row.set("idempotency_key", idempotent.map(|idempotent| &idempotent.key));
    row.set("idempotent_request", idempotent.map(|idempotent| &idempotent.request));
    row.set("baseline", &baseline);
    row.set("is_of_default_branch", state.is_of_default_branch());
    row.set("default_branch", &state.default_branch);
    describe(&mut row, state);
    set_progress(&mut row, state);
    set_times(&mut row, state);
    let inserted = row.query("returning id, request_time").fetch_one(&mut **tx).await;
    let inserted = inserted
        .on_constraint("execution_idempotency_key_key", Fault::AlreadyExists("execution"))
        .on_constraint("execution_key", Fault::AlreadyExists("execution"))?;
    let (id, request_time) = FromRow::from_row(&inserted)?;
    if !execution.tags.is_empty() {
        tags::insert(tx, caller.customer, project, id, &execution.tags).await?;
    }
    state.baseline = baseline;
    state.execution.request_time = Some(request_time);
    state.statistic.execution_request_time = Some(request_time);
    Ok(id)
}

/// Sets the columns with what is run, where it comes from and who asked for it.
fn describe(row: &mut Insertion, state: &ExecutionState) {
    let execution = &state.execution;
    row.set_id("id", &execution.id);
    row.set_id("project_id", &execution.project_id);
    row.set_id("test_set_id", &execution.test_set_id);
    row.set("test_set_name", &execution.test_set_name);
    row.set_id("software_version_id", &execution.software_version_id);
    row.set("software_version", &execution.software_version);
    row.set("software_name", &execution.software_name);
    row.set_id("environment_id", &execution.environment_id);
    row.set("environment_name", &execution.environment_name);
    row.set("request_user", &execution.request_user);
    row.set("tags", &execution.tags);
    row.set("branch", &execution.branch);
    row.set("commit", &execution.commit);
    row.set("build", &execution.build);
    row.set("ci_url", &execution.ci_url);
    row.set("mode", name_of(state.mode()));
    row.set("stop_on_failure", execution.stop_on_failure);
    row.set("time_out", execution.time_out);
    row.set("is_open", execution.is_open);
    row.set("key", &execution.key);
    row.set("reporters", execution.reporters);
    row.set("grace_in_sec", execution.grace_in_sec);
    row.set("gate", Json(&state.gate));
}

/// Sets the columns with the state and the counts.
fn set_progress(row: &mut Insertion, state: &ExecutionState) {
    let statistic = &state.statistic;
    row.set("status", name_of(state.execution.status()));
    row.set("result", name_of(state.execution.result()));
    row.set("test_cases_total", statistic.test_cases_total);
    row.set("test_cases_pending", statistic.test_cases_pending);
    row.set("test_cases_canceled", statistic.test_cases_canceled);
    row.set("test_cases_aborted", statistic.test_cases_aborted);
    row.set("test_cases_with_error", statistic.test_cases_with_error);
    row.set("test_cases_passed", statistic.test_cases_passed);
    row.set("test_cases_failed", statistic.test_cases_failed);
    row.set("total_duration_in_sec", state.total_duration_in_sec);
    row.set("revision", state.revision);
}

/// Sets the columns with times. An open execution ends after its grace period, all others at the last
/// deadline.
fn set_times(row: &mut Insertion, state: &ExecutionState) {
    let execution = &state.execution;
    row.set("start_date_time", state.start_date_time);
    row.set("finish_date_time", state.finish_date_time);
    row.set("past_end", state.past_end);
    let request_time = row.bind(execution.request_time);
    row.set_to("request_time", format!("coalesce({request_time}, now())"));
    let has_ended =
        [ExecutionStatus::Completed, ExecutionStatus::Canceled].contains(&execution.status());
    row.set_to("completion_date_time", if has_ended { "now()" } else { "null" }.to_owned());
    let seconds = row.bind(60.0 * state.deadline_in_min);
    let grace = row.bind(execution.grace_in_sec.map(f64::from));
    row.set_to("last_deadline", format!("now() + make_interval(secs => {seconds})"));
    row.set_to("deadline", format!("now() + make_interval(secs => least({seconds}, {grace}))"));
}
