//! Evidence of incidents in a completed execution and in those near to it, in PostgreSQL. Every statement is
//! bound to one customer.

use assay_proto::{CustomerId, ExecutionId, Fault, ProjectId, TestSetId, Timestamp};
use sqlx::{AssertSqlSafe, FromRow, PgTransaction};
use uuid::Uuid;

use assay_ledger::verdict::store::NEW_FAILURE;

/// Minutes before and after an execution in which others are near to it.
pub(super) const NEAR: i32 = 30;

/// Minimum number of test sets that a cause affects.
const LEAST_SETS: i64 = 3;

/// Maximum number of causes of an execution that are sought in others, those of the most test cases.
const MOST_CAUSES: i64 = 20;

/// Maximum number of executions in which a cause is sought, the latest ones.
const MOST_NEAR: i64 = 1000;

/// A completed execution.
#[derive(FromRow)]
pub(super) struct Completed {
    pub(super) id: ExecutionId,
    pub(super) project_id: ProjectId,
    pub(super) test_set_id: TestSetId,
    /// The environment and the branch, as incidents have them.
    pub(super) environment_id: Uuid,
    pub(super) branch: String,
    pub(super) request_time: Timestamp,
    pub(super) completion_date_time: Timestamp,
    /// Number of test cases that passed or failed.
    pub(super) executed: i32,
    /// Number of test cases that failed and are not muted.
    pub(super) failed: i32,
}

/// The cause of failures: its fingerprint, and a message in a few lines.
#[derive(FromRow)]
pub(super) struct Cause {
    pub(super) fingerprint: Vec<u8>,
    pub(super) headline: String,
}

/// Returns an execution, unless it was deleted.
pub(super) async fn completed(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    id: ExecutionId,
) -> Result<Option<Completed>, Fault> {
    let completed = sqlx::query_as(
        "select id, project_id, test_set_id, request_time, completion_date_time,
                coalesce(environment_id, '00000000-0000-0000-0000-000000000000') as environment_id,
                coalesce(branch, '') as branch,
                test_cases_passed + test_cases_failed + test_cases_with_error as executed,
                test_cases_failed + test_cases_with_error - (
                    select count(*) from test_report r
                    where r.customer_id = $1 and r.execution_id = $2 and r.change <> 'None'
                      and r.is_muted
                )::int as failed
         from live_execution
         where customer_id = $1 and id = $2 and status = 'Completed'",
    );
    Ok(completed.bind(customer).bind(id).fetch_optional(&mut **tx).await?)
}

/// Returns the cause of the most failing test cases of an execution.
pub(super) async fn main_cause(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    execution: ExecutionId,
) -> Result<Option<Cause>, Fault> {
    let cause = sqlx::query_as(
        "select fingerprint, min(headline) as headline from failure
         where customer_id = $1 and execution_id = $2 and headline <> ''
         group by fingerprint
         order by count(distinct test_case_id) desc, fingerprint
         limit 1",
    );
    Ok(cause.bind(customer).bind(execution).fetch_optional(&mut **tx).await?)
}

/// Days without an affected execution after which an incident is over: the test sets that it affects do not run any
/// more.
pub(super) const LONGEST_GAP: i32 = 7;

/// Returns the condition that an execution that was requested at `time` is of the time of an incident: it has
/// not ended before, and had begun, or does soon.
pub(super) fn is_of_time(time: &str) -> String {
    format!(
        "{time} >= begun_at - make_interval(mins => {NEAR})
         and {time} < coalesce(ended_at, 'infinity')
         and {time} < last_seen_at + make_interval(days => {LONGEST_GAP})"
    )
}

/// Returns the causes of new failures of an execution that most test sets of the project have in executions
/// near to it, with these executions. Causes of incidents of that time are left out.
///
/// Each cause is looked up in each execution. `exists` would let PostgreSQL join the failures of all executions instead,
/// which it did while the tables had no statistics: 1 s for one cause in 156 executions.
pub(super) async fn widespread(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    execution: &Completed,
) -> Result<Vec<(Cause, Vec<ExecutionId>)>, Fault> {
    #[derive(FromRow)]
    struct Row {
        #[sqlx(flatten)]
        cause: Cause,
        executions: Vec<ExecutionId>,
    }
    let new_failure = |execution: &str| {
        format!(
            "from failure f
             join test_report r on r.customer_id = $1 and r.execution_id = {execution}
               and r.id = f.test_report_id
             where f.customer_id = $1 and f.project_id = $2 and f.execution_id = {execution}
               and {NEW_FAILURE}"
        )
    };
    let (of_this, of_near, is_of_time) =
        (new_failure("$3"), new_failure("near.id"), is_of_time("$4"));
    let widespread = sqlx::query_as(AssertSqlSafe(format!(
        "with sought as materialized (
             select fingerprint, min(headline) as headline {of_this} and headline <> ''
               and not exists (
                   select from incident i
                   where i.customer_id = $1 and i.project_id = $2
                     and i.fingerprint = f.fingerprint and {is_of_time}
               )
             group by fingerprint
             order by count(distinct f.test_case_id) desc, fingerprint
             limit {MOST_CAUSES}
         ),
         near as materialized (
             select id, test_set_id from live_execution
             where customer_id = $1 and project_id = $2 and status = 'Completed'
               and past_end is null
               and id >= first_id_at($4 - make_interval(mins => {NEAR}))
               and id < first_id_at($4 + make_interval(mins => {NEAR}))
             order by id desc
             limit {MOST_NEAR}
         )
         select sought.fingerprint, sought.headline, array_agg(near.id) as executions
         from sought
         cross join near
         where (select count(distinct test_set_id) from near) >= {LEAST_SETS}
           and (select true {of_near} and f.fingerprint = sought.fingerprint limit 1)
         group by sought.fingerprint, sought.headline
         having count(distinct near.test_set_id) >= {LEAST_SETS}
            and 2 * count(distinct near.test_set_id)
                > (select count(distinct test_set_id) from near)"
    )))
    .bind(customer)
    .bind(execution.project_id)
    .bind(execution.id)
    .bind(execution.request_time);
    let rows: Vec<Row> = widespread.fetch_all(&mut **tx).await?;
    Ok(rows.into_iter().map(|row| (row.cause, row.executions)).collect())
}
