//! The results of a series in PostgreSQL. Every statement is bound to one customer.

use assay_proto::{CustomerId, EnumColumn, Fault, TestCaseId, TestResult};
use sqlx::{FromRow, PgTransaction};
use uuid::Uuid;

use crate::progress::execution::ExecutionState;

/// Returns up to ten executions that those of a new execution are compared with, the latest first:
/// the ended ones of its series before it, or of the series of the default branch if its branch has
/// none.
pub async fn baseline(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    state: &ExecutionState,
) -> Result<Vec<Uuid>, Fault> {
    let execution = &state.execution;
    let branches = [execution.branch.as_deref().unwrap_or_default(), &state.default_branch];
    let statement = sqlx::query_scalar(
        "with of_branch as (
             select nr, array(
                 select id from execution
                 where customer_id = $1 and project_id = $5::uuid and test_set_id = $2::uuid
                   and coalesce(environment_id, '00000000-0000-0000-0000-000000000000')
                       = coalesce($3::uuid, '00000000-0000-0000-0000-000000000000')
                   and coalesce(branch, '') = branch.name
                   and status in ('Completed', 'Canceled')
                   and id < $6::uuid
                 order by id desc
                 limit 10
             ) as executions
             from unnest($4::text[]) with ordinality as branch (name, nr)
         )
         select coalesce(
             (select executions from of_branch
              where executions <> '{}' and (nr = 1 or $4[1] <> '')
              order by nr
              limit 1),
             '{}'
         )",
    );
    let baseline = statement
        .bind(customer)
        .bind(&execution.test_set_id)
        .bind(&execution.environment_id)
        .bind(&branches[..])
        .bind(&execution.project_id)
        .bind(&execution.id);
    Ok(baseline.fetch_one(&mut **tx).await?)
}

/// Returns those of the test cases that failed in any of the executions.
pub(super) async fn failed_before(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    executions: &[Uuid],
    cases: &[TestCaseId],
) -> Result<Vec<TestCaseId>, Fault> {
    if executions.is_empty() || cases.is_empty() {
        return Ok(Vec::new());
    }
    let failed = sqlx::query_scalar(
        "select distinct test_case_id from test_report
         where customer_id = $1 and execution_id = any($2) and change in ('New', 'Still')
           and test_case_id = any($3)",
    );
    let failed = failed.bind(customer).bind(executions).bind(cases).persistent(false);
    Ok(failed.fetch_all(&mut **tx).await?)
}

#[derive(FromRow)]
struct Row {
    test_case_id: TestCaseId,
    #[sqlx(try_from = "EnumColumn<TestResult>")]
    result: i32,
}

/// Returns the results of test cases that passed or failed in an execution.
pub(super) async fn results(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    execution: Uuid,
    cases: &[TestCaseId],
) -> Result<Vec<(TestCaseId, TestResult)>, Fault> {
    let rows = sqlx::query_as(
        "select test_case_id, result from test_report
         where customer_id = $1 and execution_id = $2 and test_case_id = any($3)
           and result in ('Passed', 'Failed', 'Error')",
    );
    let rows: Vec<Row> = rows
        .bind(customer)
        .bind(execution)
        .bind(cases)
        .persistent(false)
        .fetch_all(&mut **tx)
        .await?;
    let result =
        |row: Row| (row.test_case_id, TestResult::try_from(row.result).unwrap_or_default());
    Ok(rows.into_iter().map(result).collect())
}
