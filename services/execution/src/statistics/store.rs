//! Statistics in PostgreSQL. Every statement is bound to one customer.

use std::ops::Range;

use assay_ledger::execution::store::OF_REPORTS;
use assay_proto::{
    CustomerId, EnvironmentId, ExecutionStatistic, Fault, ProjectId, TestCaseId, TestReportId,
    TestSetId, execution::TestCaseRun,
};
use assay_rpc::list::{Rows, Slice};
use sqlx::{AssertSqlSafe, PgExecutor, PgPool};
use uuid::Uuid;

use crate::{execution::list::WINDOW, statistics::filter::Filter};

/// The executions of the test set `$2` of the customer `$1` with ids from `$3` up to the one before `$4`,
/// the latest first when they are ordered by [`LATEST`].
///
/// PostgreSQL does not know the values of subqueries when it plans, so that it plans once. Only the index
/// of sets has rows in this order, so that PostgreSQL reads it, however many of the latest executions it
/// expects to be of the set.
pub(crate) const OF_SET: &str = "live_execution
         where customer_id = (select $1::uuid)
           and (test_set_id, id) >= ((select $2::uuid), (select $3::uuid))
           and (test_set_id, id) < ((select $2::uuid), (select $4::uuid))";

pub(crate) const LATEST: &str = "test_set_id desc, id desc";

/// Lists the statistics of a test set's executions, newest first. A filter that may match few of
/// them examines the executions in windows.
pub(super) async fn list(
    db: &PgPool,
    customer: CustomerId,
    set: TestSetId,
    filter: &Filter,
    slice: &Slice,
) -> Result<Rows<ExecutionStatistic>, Fault> {
    let (first, last) = filter.period.ids();
    let (mut before, mut rest) = (last.min(slice.before()?), slice.clone());
    let mut statistics = Rows::from(Vec::new());
    loop {
        let window = if filter.is_selective() || slice.pattern.is_some() {
            end_of_window(db, customer, set, first..before).await?
        } else {
            None
        };
        let ids = window.unwrap_or(first)..before;
        let more = between(db, customer, set, filter, ids, &rest).await?;
        rest.limit -= i64::try_from(more.items.len()).unwrap_or(i64::MAX);
        statistics = statistics.and(more);
        match window {
            Some(id) if rest.limit > 0 && !statistics.is_cut() => before = id,
            _ => return Ok(statistics),
        }
    }
}

/// Returns the last id of the window before the end of a range, unless fewer executions are left.
async fn end_of_window(
    db: &PgPool,
    customer: CustomerId,
    set: TestSetId,
    ids: Range<Uuid>,
) -> Result<Option<Uuid>, Fault> {
    let end = sqlx::query_scalar(AssertSqlSafe(format!(
        "select id from {OF_SET} order by {LATEST} offset $5 limit 1"
    )));
    let end = end.bind(customer).bind(set).bind(ids.start).bind(ids.end).bind(WINDOW - 1);
    Ok(end.fetch_optional(db).await?)
}

/// Lists the statistics of executions within a range of ids.
async fn between(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    set: TestSetId,
    filter: &Filter,
    ids: Range<Uuid>,
    slice: &Slice,
) -> Result<Rows<ExecutionStatistic>, Fault> {
    let columns = ExecutionStatistic::COLUMNS;
    let conditions = conditions(filter, slice);
    let limit = slice.limit_or("$10");
    let statistics = sqlx::query_as(AssertSqlSafe(format!(
        "select {columns} from {OF_SET} {conditions} order by {LATEST} limit {limit}"
    )))
    .bind(customer)
    .bind(set)
    .bind(ids.start)
    .bind(ids.end)
    .bind(filter.period.from)
    .bind(filter.period.until)
    .bind(&filter.tag)
    .bind(filter.environment)
    .bind(&slice.pattern)
    .bind(slice.limit)
    .fetch(db);
    slice.read(statistics).await
}

/// Returns those of the conditions that a filter has, since PostgreSQL would plan each execution of a
/// statement with all of them.
fn conditions(filter: &Filter, slice: &Slice) -> String {
    let conditions = [
        (filter.period.from.is_some(), "and request_time >= $5"),
        (filter.period.until.is_some(), "and request_time < $6"),
        (
            filter.tag.is_some(),
            "and exists (
                 select from unnest(string_to_array(tags, ',')) as tag where btrim(tag) = $7
             )",
        ),
        (filter.environment.is_some(), "and environment_id = $8"),
        (slice.pattern.is_some(), "and (software_name ilike $9 or software_version ilike $9)"),
    ];
    let present = conditions.into_iter().filter(|(is_present, _)| *is_present);
    present.map(|(_, condition)| condition).collect::<Vec<_>>().join(" ")
}

/// Whether an execution of the test set ran in the environment.
pub(super) async fn has_environment(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    set: TestSetId,
    environment: EnvironmentId,
) -> Result<bool, Fault> {
    let found = sqlx::query_scalar(
        "select exists (
             select from live_execution
             where customer_id = $1 and test_set_id = $2 and environment_id = $3
         )",
    );
    let found = found.bind(customer).bind(set).bind(environment);
    Ok(found.fetch_one(db).await?)
}

/// Selects runs of a test case by their executions.
#[derive(Clone, Debug)]
pub(super) struct Series {
    pub(super) branch: Option<String>,
    pub(super) set: Option<TestSetId>,
    pub(super) environment: Option<EnvironmentId>,
}

/// Lists runs of a test case, those requested last first: ids of executions begin with that time. The run of a cursor
/// may have been removed: its id begins with about the same time.
pub(super) async fn runs(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    project: ProjectId,
    case: TestCaseId,
    series: &Series,
    slice: &Slice,
) -> Result<Rows<TestCaseRun>, Fault> {
    let columns = TestCaseRun::COLUMNS;
    let runs = sqlx::query_as(AssertSqlSafe(format!(
        "select {columns}, 0::float8 as flakiness_score
         from test_report join {OF_REPORTS} using (customer_id, execution_id)
         left join lateral (
             select encode(fingerprint, 'hex') as fingerprint, left(headline, 200) as headline
             from failure
             where failure.customer_id = $1 and test_report_id = test_report.id
             order by instance_nr
             limit 1
         ) as cause on result in ('Failed', 'Error')
         where customer_id = $1 and test_case_id = $2 and project_id = $3
           and execution_id < coalesce((
               select execution_id from test_report
               where customer_id = $1 and test_case_id = $2 and id = $4
           ), $4, 'ffffffff-ffff-ffff-ffff-ffffffffffff')
           and ($5::text is null or software_name ilike $5 or software_version ilike $5
                or environment_name ilike $5)
           and ($7::text is null or branch = $7) and ($8::uuid is null or test_set_id = $8)
           and ($9::uuid is null or environment_id = $9)
         order by execution_id desc
         limit $6"
    )))
    .bind(customer)
    .bind(case)
    .bind(project)
    .bind(TestReportId::from_field_if_any("cursor", slice.after.as_deref())?)
    .bind(&slice.pattern)
    .bind(slice.limit)
    .bind(&series.branch)
    .bind(series.set)
    .bind(series.environment)
    .fetch(db);
    slice.read(runs).await
}
