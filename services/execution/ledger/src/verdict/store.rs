//! The facts that verdicts depend on, in PostgreSQL. Every statement is bound to one customer.

use assay_proto::{
    CustomerId, EnumColumn, ExecutionId, ExecutionStatistic, ExecutionStatus, Fault,
    catalog::Gate,
    execution::{ChangeCounts, Execution},
};
use sqlx::{AssertSqlSafe, FromRow, PgExecutor, types::Json};

use super::{rules::Facts, trend::TestsOfOwner};
use crate::{
    progress::execution::Unreached,
    series::{CONSIDERED, ENDED_BEFORE},
};

/// The condition that an execution says something about its tests: it was not canceled, and a test case ran.
const HAS_RUN: &str = "(status = 'Completed'
    and test_cases_passed + test_cases_failed + test_cases_with_error + test_cases_aborted > 0)";

/// Maximum number of owners in the event of an execution's end, as its contract says.
const OWNERS_IN_EVENT: i64 = 100;

/// The condition that a report needs a review.
pub const UNREVIEWED: &str = "r.result in ('Failed', 'Error') and r.change <> 'None'
    and not r.is_muted and r.status in ('InReview', 'EngineExecutionFailure')";

/// The condition that a report is a new failure for a verdict: of a stable test that passed before, or that
/// fails for another cause than before, and not muted.
pub const NEW_FAILURE: &str = "change in ('New', 'CauseChanged') and not is_muted";

/// Selects the numbers of test cases of an execution by their changes, and that of the new failures
/// that are not muted. An index has only the reports that have changed.
pub fn changes_of(execution: &str) -> String {
    format!(
        "select (count(*) filter (where change = 'New'))::int as new,
                (count(*) filter (where change = 'Still'))::int as still,
                (count(*) filter (where change = 'CauseChanged'))::int as cause_changed,
                (count(*) filter (where change = 'Fixed'))::int as fixed,
                (count(*) filter (where change = 'Flaky'))::int as flaky,
                (count(*) filter (where is_muted))::int as muted,
                (count(*) filter (where {UNREVIEWED}))::int as unreviewed,
                (count(*) filter (where change = 'New' and is_muted))::int as muted_new,
                (count(*) filter (where change = 'CauseChanged' and is_muted))::int
                    as muted_cause_changed,
                (count(*) filter (where change = 'Still' and is_muted))::int as muted_still,
                (count(*) filter (where change = 'Flaky' and is_muted))::int as muted_flaky,
                (count(*) filter (where {NEW_FAILURE}))::int as new_failures
         from test_report r
         where r.customer_id = $1 and r.execution_id = {execution} and change <> 'None'"
    )
}

/// Selects the identifiers that the gate of the execution `e` requires.
pub const REQUIRED: &str = "select jsonb_array_elements_text(e.gate -> 'RequiredTestCases')";

/// Selects the test cases that are required in an execution and have neither passed nor failed, in their order. A test
/// case has the identifier under which it was reported, and its own one if that was an alias. `required` is an array
/// of identifiers.
pub fn not_executed(execution: &str, required: &str) -> String {
    // Each identifier has an index, which a condition with `or` would not use.
    let not_executed_as = |column: &str| {
        format!(
            "not exists (
                 select from test_report
                 where customer_id = $1 and execution_id = {execution}
                   and {column} = identifier
                   and result in ('Passed', 'Failed', 'Error')
             )"
        )
    };
    let (reported, own) =
        (not_executed_as("test_case_identifier"), not_executed_as("own_identifier"));
    format!(
        "select identifier from unnest({required}) with ordinality as required (identifier, nr)
         where {reported} and {own}
         order by nr"
    )
}

/// The facts that the verdict of an execution depends on.
#[derive(FromRow)]
pub(super) struct Read {
    #[sqlx(flatten)]
    pub(super) statistic: ExecutionStatistic,
    #[sqlx(flatten)]
    pub(super) changes: ChangeCounts,
    #[sqlx(try_from = "EnumColumn<ExecutionStatus>")]
    status: i32,
    pub(super) id: ExecutionId,
    /// The number of new failures that are not muted.
    new_failures: i32,
    pub(super) gate: Json<Gate>,
    /// The required test cases without a result.
    not_executed: Vec<String>,
    #[sqlx(flatten)]
    unreached: Unreached,
    /// Whether it says something about its tests, by [`HAS_RUN`].
    pub(super) has_run: bool,
    /// Whether this is the execution before.
    is_before: bool,
}

impl Read {
    pub(super) fn facts(&self) -> Facts<'_> {
        Facts {
            status: ExecutionStatus::try_from(self.status).unwrap_or_default(),
            statistic: &self.statistic,
            changes: &self.changes,
            new_failures: self.new_failures,
            not_executed: &self.not_executed,
            unreached: self.unreached,
        }
    }
}

/// Reads the facts of an ended execution, and those of the one before it in its series, if there is one: the
/// last one that was not canceled and in which a test case ran.
pub(super) async fn read(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    execution: &Execution,
) -> Result<(Read, Option<Read>), Fault> {
    let (statistic, changes) = (ExecutionStatistic::COLUMNS, changes_of("e.id"));
    let not_executed = not_executed("e.id", &format!("array({REQUIRED})"));
    let unreached = Unreached::COLUMNS;
    let read = sqlx::query_as(AssertSqlSafe(format!(
        "select {statistic}, id, status, gate, {unreached}, changes.*,
                array({not_executed}) as not_executed,
                {HAS_RUN} as has_run, id <> $6::uuid as is_before
         from execution e
         cross join lateral ({changes}) as changes
         where e.customer_id = $1 and e.id = any(array[$6::uuid, (
             select id from (
                 select id, {HAS_RUN} as has_run {ENDED_BEFORE}
             ) as latest
             where has_run
             order by id desc
             limit 1
         )])"
    )));
    let read = read
        .bind(customer)
        .bind(&execution.project_id)
        .bind(&execution.test_set_id)
        .bind(&execution.environment_id)
        .bind(execution.branch.as_deref().unwrap_or_default())
        .bind(&execution.id)
        .bind(CONSIDERED);
    let read: Vec<Read> = read.fetch_all(db).await?;
    let (before, own): (Vec<_>, Vec<_>) = read.into_iter().partition(|read| read.is_before);
    let own = own.into_iter().next().ok_or(Fault::NotFound("execution"))?;
    Ok((own, before.into_iter().next()))
}

/// Lists the first owners of those test cases of an ended execution that have failed or were aborted in it and are
/// not muted, or are fixed, and how the tests of each have ended in it and in the execution before. Owners whose names
/// differ only in the case of the letters from A to Z are one, as for filters.
pub(super) async fn owners(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    execution: ExecutionId,
    before: Option<ExecutionId>,
) -> Result<Vec<TestsOfOwner>, Fault> {
    let owners = sqlx::query_as(AssertSqlSafe(format!(
        "select min(owner collate \"C\") as owner,
                bool_or(is_now and has_failed) as has_failures,
                bool_or(is_now and {NEW_FAILURE}) as has_new_failures,
                bool_or(not is_now and has_failed) as had_failures
         from (
             select owners, change, is_muted, execution_id = $2 as is_now,
                    result in ('Failed', 'Error', 'Aborted') as has_failed
             from test_report
             where customer_id = $1 and execution_id = any(array[$2, $3]::uuid[])
         ) as report cross join unnest(owners) as owner
         where has_failed or change = 'Fixed'
         group by lower(owner collate \"C\")
         having bool_or(is_now and (has_failed and not is_muted or change = 'Fixed'))
         order by lower(owner collate \"C\")
         limit $4"
    )));
    let owners = owners.bind(customer).bind(execution).bind(before).bind(OWNERS_IN_EVENT);
    Ok(owners.fetch_all(db).await?)
}
