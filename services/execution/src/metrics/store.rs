//! The latest outcomes of test sets, in PostgreSQL.

use assay_ledger::{
    deletion::records::is_not_deleted,
    progress::execution::Unreached,
    verdict::{
        rules::{Facts, state},
        store::{REQUIRED, changes_of, not_executed},
    },
};
use assay_proto::{
    CustomerId, EnumColumn, ExecutionStatistic, ExecutionStatus, Fault, ProjectId,
    catalog::Gate,
    execution::{ChangeCounts, TestSetOutcome},
};
use sqlx::{AssertSqlSafe, FromRow, PgExecutor, types::Json};

/// Maximum number of outcomes.
const MOST: i64 = 100;

/// Maximum number of series that are considered.
const MOST_SERIES: i64 = 10_000;

/// Number of days after which the outcome of a test set that no longer runs is left out.
const DAYS: i32 = 90;

/// The last execution of a series.
#[derive(FromRow)]
struct Row {
    #[sqlx(flatten)]
    outcome: TestSetOutcome,
    #[sqlx(flatten)]
    statistic: ExecutionStatistic,
    #[sqlx(flatten)]
    changes: ChangeCounts,
    #[sqlx(try_from = "EnumColumn<ExecutionStatus>")]
    status: i32,
    gate: Json<Gate>,
    new_failures: i32,
    #[sqlx(flatten)]
    unreached: Unreached,
    /// One of the required test cases without a result.
    not_executed: Vec<String>,
    /// The number of series.
    series: i64,
}

impl From<Row> for TestSetOutcome {
    fn from(row: Row) -> Self {
        let facts = Facts {
            status: ExecutionStatus::try_from(row.status).unwrap_or_default(),
            statistic: &row.statistic,
            changes: &row.changes,
            new_failures: row.new_failures,
            not_executed: &row.not_executed,
            unreached: row.unreached,
        };
        let verdict = state(facts.outcomes(&row.gate).as_deref()).into();
        let (statistic, changes) = (Some(row.statistic), Some(row.changes));
        Self { statistic, changes, verdict, ..row.outcome }
    }
}

/// Returns the outcomes of the series of a branch, and of those without a branch, the latest first,
/// with the number of others. Each step of the recursion finds the next series in an index, so the
/// number of executions does not matter.
pub(super) async fn outcomes(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    project: ProjectId,
    branch: &str,
) -> Result<(Vec<TestSetOutcome>, i32), Fault> {
    let (columns, statistic) = (TestSetOutcome::COLUMNS, ExecutionStatistic::COLUMNS);
    let (changes, unreached) = (changes_of("e.id"), Unreached::COLUMNS);
    let not_executed = not_executed("e.id", &format!("array({REQUIRED})"));
    let is_not_deleted = is_not_deleted("$2", "test_set");
    let next = |after: &str| {
        format!(
            "cross join lateral (
                 select e.test_set_id as test_set, {ENVIRONMENT} as environment, e.id
                 from execution e
                 where e.customer_id = $1 and e.project_id = $2
                   and coalesce(e.branch, '') = branch.name
                   and e.status in ('Completed', 'Canceled') and not e.is_merged {after}
                 order by e.test_set_id desc, {ENVIRONMENT} desc, e.id desc
                 limit 1
             ) as last"
        )
    };
    let (first, later) =
        (next(""), next(&format!("and (e.test_set_id, {ENVIRONMENT}) < (test_set, environment)")));
    let rows: Vec<Row> = sqlx::query_as(AssertSqlSafe(format!(
        "with recursive series as (
             select branch.name, last.*
             from unnest(array['', $3]) as branch (name) {first}
             union all
             select branch.name, last.* from series as branch {later}
         ),
         latest as (
             select id as execution, count(*) over () as series
             from (
                 select distinct on (test_set, environment) id
                 from (select * from series limit {MOST_SERIES}) as found
                 where id >= first_id_at(now() - make_interval(days => {DAYS}))
                   and {is_not_deleted}
                 order by test_set, environment, id desc
             ) as last
             order by id desc
             limit {MOST}
         )
         select {columns}, {statistic}, {unreached}, e.status, e.gate, changes.*,
                array({not_executed} limit 1) as not_executed, series
         from latest
         join live_execution e on e.customer_id = $1 and e.id = latest.execution
         cross join lateral ({changes}) as changes
         order by e.id desc"
    )))
    .bind(customer)
    .bind(project)
    .bind(branch)
    .fetch_all(db)
    .await?;
    let series = rows.first().map_or(0, |row| row.series);
    let omitted = series.saturating_sub(MOST).max(0);
    let omitted = i32::try_from(omitted).unwrap_or(i32::MAX);
    Ok((rows.into_iter().map(TestSetOutcome::from).collect(), omitted))
}

/// The environment of an execution, in the words of the index.
const ENVIRONMENT: &str = "coalesce(e.environment_id, '00000000-0000-0000-0000-000000000000')";
