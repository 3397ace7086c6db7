//! The rules and failures of executions for their verdicts, in PostgreSQL. Every statement is bound to one customer.

use assay_ledger::{
    progress::execution::Unreached,
    verdict::store::{NEW_FAILURE, not_executed as select_not_executed},
};
use assay_proto::{CustomerId, ExecutionId, Fault, catalog::Gate, execution::NewFailure};
use sqlx::{AssertSqlSafe, FromRow, PgExecutor, types::Json};

/// Number of new failures that a verdict lists.
const LISTED: i64 = 20;

/// The new failures that are not muted.
pub(super) struct NewFailures {
    pub(super) count: i32,
    pub(super) first: Vec<NewFailure>,
}

/// The rules of an execution, and what it has not reached.
#[derive(FromRow)]
pub(super) struct Judged {
    pub(super) gate: Json<Gate>,
    #[sqlx(flatten)]
    pub(super) unreached: Unreached,
}

/// Reads the rules of an execution.
pub(super) async fn judged(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    id: ExecutionId,
) -> Result<Judged, Fault> {
    let unreached = Unreached::COLUMNS;
    let judged = sqlx::query_as(AssertSqlSafe(format!(
        "select gate, {unreached} from execution where customer_id = $1 and id = $2"
    )));
    let judged: Option<Judged> = judged.bind(customer).bind(id).fetch_optional(db).await?;
    judged.ok_or(Fault::NotFound("execution"))
}

/// Returns those of the test cases that have neither passed nor failed.
pub(super) async fn not_executed(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    id: ExecutionId,
    identifiers: &[String],
) -> Result<Vec<String>, Fault> {
    if identifiers.is_empty() {
        return Ok(Vec::new());
    }
    let missing = sqlx::query_scalar(AssertSqlSafe(select_not_executed("$2", "$3::text[]")));
    Ok(missing.bind(customer).bind(id).bind(identifiers).fetch_all(db).await?)
}

#[derive(FromRow)]
struct Row {
    #[sqlx(flatten)]
    failure: NewFailure,
    count: i32,
}

/// Counts the new failures that are not muted, and reads the first ones.
pub(super) async fn new_failures(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    id: ExecutionId,
) -> Result<NewFailures, Fault> {
    let rows: Vec<Row> = sqlx::query_as(AssertSqlSafe(format!(
        "select r.test_case_identifier, coalesce(f.headline, '') as headline, r.count
         from (
             select id, test_case_identifier, (count(*) over ())::int as count from test_report
             where customer_id = $1 and execution_id = $2 and {NEW_FAILURE}
             order by id
             limit $3
         ) as r
         left join lateral (
             select headline from kept_failure
             where customer_id = $1 and test_report_id = r.id
             order by instance_nr
             limit 1
         ) as f on true
         order by r.id"
    )))
    .bind(customer)
    .bind(id)
    .bind(LISTED)
    .fetch_all(db)
    .await?;
    let count = rows.first().map_or(0, |row| row.count);
    Ok(NewFailures { count, first: rows.into_iter().map(|row| row.failure).collect() })
}
