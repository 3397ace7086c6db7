//! Ended executions with what their verdicts depend on, in PostgreSQL. Every statement is bound to one
//! customer.

use assay_ledger::{
    progress::execution::Unreached,
    verdict::store::{REQUIRED, changes_of, not_executed},
};
use assay_proto::{
    CustomerId, ExecutionStatistic, Fault, TestSetId, Timestamp, catalog::Gate,
    execution::BacktestDifference,
};
use sqlx::{AssertSqlSafe, PgExecutor};

use super::{rules::Selected, verdict::Stored};
use crate::statistics::store::{LATEST, OF_SET};

/// Maximum number of executions that are read at a time.
pub(super) const SLICE: usize = 100;

/// Number of days before now in which executions are replayed by default.
const DAYS: i32 = 90;

/// Returns the time from which on executions are replayed by default.
pub(super) async fn begin_of_default(db: impl PgExecutor<'_>) -> Result<Timestamp, Fault> {
    let begin = sqlx::query_scalar("select now() - make_interval(days => $1)");
    Ok(begin.bind(DAYS).fetch_one(db).await?)
}

/// Reads ended executions of a test set, the latest first. Those of launches that were merged into another one are left
/// out, as in histories.
pub(super) async fn ended(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    set: TestSetId,
    selected: &Selected,
    gate: &Gate,
) -> Result<Vec<Stored>, Fault> {
    let (columns, statistic) = (BacktestDifference::COLUMNS, ExecutionStatistic::COLUMNS);
    let (changes, unreached) = (changes_of("e.id"), Unreached::COLUMNS);
    let required = format!("array({REQUIRED} union select unnest($8::text[]))");
    let not_executed = not_executed("e.id", &required);
    let (first, last) = selected.period.ids();
    let ended = sqlx::query_as(AssertSqlSafe(format!(
        "select {columns}, {statistic}, {unreached}, id, status, gate, environment_id, commit, baseline,
                changes.*, array({not_executed}) as not_executed
         from (
             select * from {OF_SET}
               and status in ('Completed', 'Canceled') and not is_merged
               and request_time >= coalesce($5, '-infinity')
               and request_time < coalesce($6, 'infinity')
             order by {LATEST}
             limit $7
         ) as e
         cross join lateral ({changes}) as changes
         order by {LATEST}"
    )))
    .bind(customer)
    .bind(set)
    .bind(first)
    .bind(selected.before.map_or(last, |before| before.min(last)))
    .bind(selected.period.from)
    .bind(selected.period.until)
    .bind(i64::try_from(SLICE).unwrap_or(i64::MAX))
    .bind(&gate.required_test_cases)
    .fetch_all(db)
    .await?;
    Ok(ended)
}
