//! The facts that verdicts depend on, in PostgreSQL. Every statement is bound to one customer.

use assay_proto::{CustomerId, ExecutionId, Fault, catalog::Gate, execution::ChangeCounts};
use sqlx::{AssertSqlSafe, FromRow, PgExecutor, types::Json};

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

/// Selects the test cases that are required and have neither passed nor failed, in their order. `required` is an
/// array of identifiers.
pub fn not_executed(required: &str) -> String {
    format!(
        "select identifier from unnest({required}) with ordinality as required (identifier, nr)
         where not exists (
             select from test_report
             where customer_id = $1 and execution_id = $2 and test_case_identifier = identifier
               and result in ('Passed', 'Failed', 'Error')
         )
         order by nr"
    )
}

/// The facts that the verdict of an execution depends on, except its status and its results.
#[derive(FromRow)]
pub(super) struct Read {
    #[sqlx(flatten)]
    pub(super) changes: ChangeCounts,
    /// The number of new failures that are not muted.
    pub(super) new_failures: i32,
    pub(super) gate: Json<Gate>,
    /// The required test cases without a result.
    pub(super) not_executed: Vec<String>,
}

pub(super) async fn read(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    id: ExecutionId,
) -> Result<Read, Fault> {
    let changes = changes_of("$2");
    let required =
        "array(select jsonb_array_elements_text(coalesce(gate->'RequiredTestCases', '[]')))";
    let not_executed = not_executed(required);
    let read = sqlx::query_as(AssertSqlSafe(format!(
        "select changes.*, gate, array({not_executed}) as not_executed
         from execution e
         cross join lateral ({changes}) as changes
         where e.customer_id = $1 and e.id = $2"
    )));
    let read: Option<Read> = read.bind(customer).bind(id).fetch_optional(db).await?;
    read.ok_or(Fault::NotFound("execution"))
}
