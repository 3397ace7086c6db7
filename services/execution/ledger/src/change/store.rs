//! The results of a baseline in PostgreSQL. Every statement is bound to one customer.

use std::collections::{HashMap, HashSet};

use assay_judge::{OUTAGE_OF, OUTAGE_PERCENT};
use assay_proto::{CustomerId, ExecutionId, Fault, TestCaseId, catalog::Gate};
use sqlx::{AssertSqlSafe, PgExecutor, PgTransaction, types::Json};
use uuid::Uuid;

use super::history::{Coded, FAILED, Origin, PASSED, PASSED_ON_RETRY};
use crate::{
    progress::execution::ExecutionState,
    series::{CONSIDERED, ENDED_BEFORE},
};

/// Maximum number of executions of a baseline: no rule looks at more.
pub(super) const MOST: usize = 50;

/// Returns the latest ended executions of a branch before a new execution, in its test set and
/// environment. Those in which nearly everything failed say nothing about tests, and are left out, unless
/// the failures were muted: then somebody has understood them.
pub(super) async fn ended(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    state: &ExecutionState,
    branch: &str,
) -> Result<Vec<Uuid>, Fault> {
    let execution = &state.execution;
    let ended = sqlx::query_scalar(AssertSqlSafe(format!(
        "select id from (
             select id, test_cases_failed + test_cases_with_error as failed,
                    test_cases_passed + test_cases_failed + test_cases_with_error as executed
             {ENDED_BEFORE}
         ) as latest
         where executed < $8 or 100 * failed <= $9 * executed
            or 100 * (failed - (
                   select count(*) from test_report r
                   where r.customer_id = $1 and r.execution_id = latest.id
                     and r.change <> 'None' and r.is_muted
               )) <= $9 * executed
         order by id desc
         limit $10"
    )));
    let ended = ended
        .bind(customer)
        .bind(&execution.project_id)
        .bind(&execution.test_set_id)
        .bind(&execution.environment_id)
        .bind(branch)
        .bind(&execution.id)
        .bind(CONSIDERED)
        .bind(OUTAGE_OF)
        .bind(OUTAGE_PERCENT)
        .bind(i64::try_from(MOST).unwrap_or(i64::MAX));
    Ok(ended.fetch_all(&mut **tx).await?)
}

/// Returns the default branch that the project had when an execution was requested.
pub(super) async fn default_branch(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    id: ExecutionId,
) -> Result<String, Fault> {
    let branch = "select default_branch from execution where customer_id = $1 and id = $2";
    Ok(sqlx::query_scalar(branch).bind(customer).bind(id).fetch_one(&mut **tx).await?)
}

/// Stores the baseline of a locked execution whose branch has changed.
pub(super) async fn rebase(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    id: ExecutionId,
    state: &ExecutionState,
) -> Result<(), Fault> {
    let rebase = sqlx::query(
        "update execution set baseline = $3, is_of_default_branch = $4
         where customer_id = $1 and id = $2",
    );
    let rebase = rebase.bind(customer).bind(id).bind(&state.baseline);
    rebase.bind(state.is_of_default_branch()).execute(&mut **tx).await?;
    Ok(())
}

/// Marks executions as merged into one without results, and takes them out of its baseline.
pub(super) async fn leave_out(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    merged: ExecutionId,
    executions: &[ExecutionId],
) -> Result<(), Fault> {
    for statement in [
        "update execution set is_merged = true
         where customer_id = $1 and id = any($3) and id <> $2",
        "update execution
         set baseline = array(
             select earlier.id from unnest(baseline) with ordinality as earlier (id, nr)
             where earlier.id <> all($3)
             order by nr
         )
         where customer_id = $1 and id = $2 and baseline && $3
           and test_cases_pending = test_cases_total",
    ] {
        let statement = sqlx::query(statement).bind(customer).bind(merged).bind(executions);
        statement.execute(&mut **tx).await?;
    }
    Ok(())
}

/// Returns the first ones of these executions that have the branch of the very first one.
pub(super) async fn of_first_branch(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    executions: &[Uuid],
    most: i64,
) -> Result<Vec<Uuid>, Fault> {
    if executions.is_empty() {
        return Ok(Vec::new());
    }
    let of_branch = sqlx::query_scalar(
        "select e.id
         from unnest($2::uuid[]) with ordinality as baseline (id, nr)
         join execution e on e.customer_id = $1 and e.id = baseline.id
         join execution first on first.customer_id = $1 and first.id = ($2::uuid[])[1]
         where coalesce(e.branch, '') = coalesce(first.branch, '')
         order by nr
         limit $3",
    );
    Ok(of_branch.bind(customer).bind(executions).bind(most).fetch_all(db).await?)
}

/// Reads the gate that the test set had when an execution was requested.
pub(super) async fn gate(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    id: ExecutionId,
) -> Result<Gate, Fault> {
    let gate = sqlx::query_scalar("select gate from execution where customer_id = $1 and id = $2");
    let Json(gate): Json<Gate> = gate.bind(customer).bind(id).fetch_one(&mut **tx).await?;
    Ok(gate)
}

/// Returns the origins of executions, in their order.
pub(super) async fn origins(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    executions: &[Uuid],
) -> Result<Vec<Origin>, Fault> {
    let origins = sqlx::query_as(
        "select coalesce(branch, '') as branch, coalesce(commit, '') as commit,
                row_number() over (order by baseline.id desc) as age
         from unnest($2::uuid[]) with ordinality as baseline (id, nr)
         left join execution e on e.customer_id = $1 and e.id = baseline.id
         order by nr",
    );
    Ok(origins.bind(customer).bind(executions).fetch_all(&mut **tx).await?)
}

/// Returns those of the test cases that had a change in any of the executions, as all that failed there
/// have.
pub(super) async fn with_changes(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    executions: &[Uuid],
    cases: &[TestCaseId],
) -> Result<Vec<TestCaseId>, Fault> {
    if executions.is_empty() || cases.is_empty() {
        return Ok(Vec::new());
    }
    let changed = sqlx::query_scalar(
        "select distinct test_case_id from test_report
         where customer_id = $1 and execution_id = any($2) and change <> 'None'
           and test_case_id = any($3)",
    );
    let changed = changed.bind(customer).bind(executions).bind(cases).persistent(false);
    Ok(changed.fetch_all(&mut **tx).await?)
}

/// Returns the results of test cases in the executions, in their order.
pub(super) async fn results(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    executions: &[Uuid],
    cases: &[TestCaseId],
) -> Result<HashMap<TestCaseId, Vec<Coded>>, Fault> {
    let results = sqlx::query_as(
        "select r.test_case_id,
                array_agg((4 * (nr - 1) + case
                    when r.result <> 'Passed' then $4
                    when r.is_flaky then $5
                    else $6
                end)::smallint order by nr)
         from unnest($2::uuid[]) with ordinality as baseline (id, nr)
         join test_report r on r.customer_id = $1 and r.execution_id = baseline.id
             and r.test_case_id = any($3)
         where r.result in ('Passed', 'Failed', 'Error')
         group by r.test_case_id",
    );
    let results: Vec<(TestCaseId, Vec<Coded>)> = results
        .bind(customer)
        .bind(executions)
        .bind(cases)
        .bind(FAILED)
        .bind(PASSED_ON_RETRY)
        .bind(PASSED)
        .persistent(false)
        .fetch_all(&mut **tx)
        .await?;
    Ok(results.into_iter().collect())
}

/// Returns those of the reports that have a failure whose cause no earlier failure of the test in the
/// baseline had.
pub(super) async fn with_other_causes(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    state: &ExecutionState,
    reports: &[String],
) -> Result<HashSet<String>, Fault> {
    if reports.is_empty() {
        return Ok(HashSet::new());
    }
    let is_other = is_other_cause("$3");
    let other = sqlx::query_scalar(AssertSqlSafe(format!(
        "select distinct f.test_report_id::text from failure f
         where f.customer_id = $1 and f.test_report_id = any($2::text[]::uuid[]) and {is_other}"
    )));
    let other: Vec<String> =
        other.bind(customer).bind(reports).bind(&state.baseline).fetch_all(&mut **tx).await?;
    Ok(other.into_iter().collect())
}

/// Returns the condition that no earlier failure of the test in a baseline had the cause of the failure
/// `f`, although causes of it are known there.
pub(super) fn is_other_cause(baseline: &str) -> String {
    format!(
        "exists (
             select from kept_failure p
             where p.customer_id = $1 and p.execution_id = any({baseline})
               and p.test_case_id = f.test_case_id
         )
         and not exists (
             select from failure p
             where p.customer_id = $1 and p.project_id = f.project_id
               and p.fingerprint = f.fingerprint and p.execution_id = any({baseline})
               and p.test_case_id = f.test_case_id
         )"
    )
}
