//! The failures of ended executions and the results in their baselines, in PostgreSQL. Every statement is
//! bound to one customer.

use std::collections::{HashMap, HashSet};

use assay_proto::{
    CustomerId, EnumColumn, ExecutionId, Fault, ResultChange, TestCaseId, TestReportId,
};
use sqlx::{AssertSqlSafe, FromRow, PgExecutor};
use uuid::Uuid;

use super::{Ended, SLICE};
use crate::{
    change::{
        history::{Coded, FAILED, Origin, PASSED, PASSED_ON_RETRY},
        store::is_other_cause,
    },
    column::column,
};

/// A report that failed.
#[derive(FromRow)]
pub(super) struct Failing {
    /// The number of its execution among those that are replayed, from 1.
    nr: i64,
    pub(super) execution: ExecutionId,
    pub(super) id: TestReportId,
    pub(super) test_case: TestCaseId,
    /// The change that was stored.
    #[sqlx(try_from = "EnumColumn<ResultChange>")]
    change: i32,
    pub(super) is_muted: bool,
}

impl Failing {
    /// Returns the index of its execution.
    pub(super) fn index(&self) -> Result<usize, Fault> {
        usize::try_from(self.nr - 1).map_err(Fault::internal)
    }

    pub(super) fn change(&self) -> ResultChange {
        ResultChange::try_from(self.change).unwrap_or_default()
    }
}

/// Returns failed reports of executions after that of a test case in an execution, in the order of both. An
/// index has only the reports that have changed, as all that failed have.
pub(super) async fn failing(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    executions: &[Ended<'_>],
    after: Option<(ExecutionId, TestCaseId)>,
) -> Result<Vec<Failing>, Fault> {
    let (execution, case) = after.unzip();
    let failing = sqlx::query_as(
        "select nr, replayed.id as execution, r.*
         from unnest($2::uuid[]) with ordinality as replayed (id, nr)
         cross join lateral (
             select id, test_case_id as test_case, change, is_muted from test_report
             where customer_id = $1 and execution_id = replayed.id and change <> 'None'
               and result in ('Failed', 'Error')
         ) as r
         where $3::uuid is null or (replayed.id, r.test_case) > ($3, $4)
         order by replayed.id, r.test_case
         limit $5",
    );
    let failing = failing
        .bind(customer)
        .bind(column(executions, |execution| execution.id))
        .bind(execution)
        .bind(case)
        .bind(i64::try_from(SLICE).unwrap_or(i64::MAX))
        .persistent(false);
    Ok(failing.fetch_all(db).await?)
}

/// Returns the branches and commits of the executions in baselines.
pub(super) async fn origins(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    executions: &[Uuid],
) -> Result<HashMap<Uuid, Origin>, Fault> {
    #[derive(FromRow)]
    struct Row {
        id: Uuid,
        #[sqlx(flatten)]
        origin: Origin,
    }
    let origins = sqlx::query_as(
        "select id, coalesce(branch, '') as branch, coalesce(commit, '') as commit, 0::int8 as age
         from execution
         where customer_id = $1 and id = any($2)",
    );
    let origins = origins.bind(customer).bind(executions).persistent(false);
    let origins: Vec<Row> = origins.fetch_all(db).await?;
    Ok(origins.into_iter().map(|row| (row.id, row.origin)).collect())
}

/// An execution in the baselines of a series: the index of the series, and its own there.
pub(super) struct Earlier {
    pub(super) series: i32,
    pub(super) nr: i32,
    pub(super) id: Uuid,
}

/// Returns the results of tests of a series in its baselines: the index of the series, the test, and four
/// times the index of an execution with the outcome there.
pub(super) async fn results(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    tests: &[(i32, TestCaseId)],
    baselines: &[Earlier],
) -> Result<Vec<(i32, TestCaseId, Vec<Coded>)>, Fault> {
    // Looking each result up in the index, once, is always faster than reading all of the table, but
    // PostgreSQL overestimates what it costs.
    let results = sqlx::query_as(
        "select series, sought.id, array_agg((4 * baseline.nr + r.outcome)::smallint)
         from unnest($2::uuid[], $3::int[]) as sought (id, series)
         join unnest($4::uuid[], $5::int[], $6::int[]) as baseline (id, series, nr) using (series)
         cross join lateral (
             select case when result <> 'Passed' then $7 when is_flaky then $8 else $9 end as outcome
             from test_report
             where customer_id = $1 and execution_id = baseline.id and test_case_id = sought.id
               and result in ('Passed', 'Failed', 'Error')
             limit 1
         ) as r
         group by series, sought.id",
    );
    let results = results
        .bind(customer)
        .bind(column(tests, |(_, case)| *case))
        .bind(column(tests, |(series, _)| *series))
        .bind(column(baselines, |earlier| earlier.id))
        .bind(column(baselines, |earlier| earlier.series))
        .bind(column(baselines, |earlier| earlier.nr))
        .bind(FAILED)
        .bind(PASSED_ON_RETRY)
        .bind(PASSED)
        .persistent(false);
    Ok(results.fetch_all(db).await?)
}

/// Returns those of the reports that have a failure whose cause no earlier failure of the test in the
/// baseline had.
pub(super) async fn with_other_causes(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    reports: &[TestReportId],
) -> Result<HashSet<TestReportId>, Fault> {
    if reports.is_empty() {
        return Ok(HashSet::new());
    }
    let is_other = is_other_cause("e.baseline");
    let other = sqlx::query_scalar(AssertSqlSafe(format!(
        "select distinct f.test_report_id from failure f
         join execution e on e.customer_id = f.customer_id and e.id = f.execution_id
         where f.customer_id = $1 and f.test_report_id = any($2) and {is_other}"
    )));
    let other: Vec<TestReportId> = other.bind(customer).bind(reports).fetch_all(db).await?;
    Ok(other.into_iter().collect())
}
