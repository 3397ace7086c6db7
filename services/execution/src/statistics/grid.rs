//! The results of the test cases of a test set in its latest executions.

use assay_ledger::deletion::records::is_not_deleted;
use assay_proto::{
    CustomerId, EnvironmentId, Fault, ProjectId, TestCaseId, TestSetId,
    execution::{GetGridRequest, Grid, GridCase, GridExecution},
};
use assay_records::Check;
use sqlx::{AssertSqlSafe, PgPool};
use uuid::Uuid;

/// Default and maximum number of executions.
const EXECUTIONS: i32 = 20;
const MOST_EXECUTIONS: i32 = 50;

/// Default and maximum number of test cases.
const CASES: i32 = 50;
const MOST_CASES: i32 = 200;

/// The part of a grid that a client asks for.
pub(super) struct Part {
    branch: Option<String>,
    environment: Option<EnvironmentId>,
    executions: i32,
    limit: i32,
    after: Option<TestCaseId>,
    failing: bool,
}

impl Part {
    pub(super) fn of(request: &GetGridRequest) -> Result<Self, Fault> {
        let mut check = Check::default();
        let executions = request.executions.unwrap_or(EXECUTIONS);
        check.range("executions", executions, 1..=MOST_EXECUTIONS);
        let limit = request.limit.unwrap_or(CASES);
        check.range("limit", limit, 1..=MOST_CASES);
        check.text("branch", request.branch.as_deref().unwrap_or_default());
        let environment =
            EnvironmentId::from_field_if_any("environmentId", request.environment_id.as_deref());
        let environment = check.read(environment)?.flatten();
        let after = TestCaseId::from_field_if_any("cursor", request.cursor.as_deref());
        let after = check.read(after)?.flatten();
        check.done()?;
        let branch = request.branch.clone().filter(|branch| !branch.is_empty());
        Ok(Self { branch, environment, executions, limit, after, failing: request.failing })
    }
}

pub(super) async fn of(
    db: &PgPool,
    customer: CustomerId,
    project: ProjectId,
    set: TestSetId,
    part: &Part,
) -> Result<Grid, Fault> {
    let executions = executions(db, customer, set, part).await?;
    let ids: Result<Vec<Uuid>, _> = executions.iter().map(|one| one.id.parse()).collect();
    let mut cases = cases(db, customer, project, &ids.map_err(Fault::internal)?, part).await?;
    let limit = usize::try_from(part.limit).unwrap_or_default();
    let has_more = cases.len() > limit;
    cases.truncate(limit);
    let last = cases.last().filter(|_| has_more);
    let next_cursor = last.map(|case| case.test_case_id.clone());
    Ok(Grid { executions, cases, next_cursor })
}

/// Returns the latest executions of a set, the latest last.
async fn executions(
    db: &PgPool,
    customer: CustomerId,
    set: TestSetId,
    part: &Part,
) -> Result<Vec<GridExecution>, Fault> {
    let executions = sqlx::query_as(
        "select * from (
             select id, request_time, result, status, branch, build from live_execution
             where customer_id = $1 and test_set_id = $2 and ($3::text is null or branch = $3)
               and ($4::uuid is null or environment_id = $4)
             order by id desc
             limit $5
         ) as latest
         order by id",
    );
    let executions = executions
        .bind(customer)
        .bind(set)
        .bind(&part.branch)
        .bind(part.environment)
        .bind(part.executions);
    Ok(executions.fetch_all(db).await?)
}

/// Returns test cases with their results in executions, one more than the limit if there are more. Deleted
/// ones are left out.
async fn cases(
    db: &PgPool,
    customer: CustomerId,
    project: ProjectId,
    executions: &[Uuid],
    part: &Part,
) -> Result<Vec<GridCase>, Fault> {
    let is_not_deleted = is_not_deleted("$5", "test_case_id");
    // An index has only the reports that have changed, among which are those that fail.
    let failing = "and change <> 'None' and result in ('Failed', 'Error')";
    let failing = if part.failing { failing } else { "" };
    let cases = sqlx::query_as(AssertSqlSafe(format!(
        "with shown as materialized (
             select distinct test_case_id
             from unnest($2::uuid[]) as execution (id)
             cross join lateral (
                 select test_case_id from test_report
                 where customer_id = $1 and execution_id = execution.id
                   and test_case_id > coalesce($3, '00000000-0000-0000-0000-000000000000')
                   and {is_not_deleted} {failing}
                 order by test_case_id
                 limit $4
             ) as r
             order by test_case_id
             limit $4
         )
         select shown.test_case_id, last.test_case_identifier, last.test_case_name, results.outcomes
         from shown
         cross join lateral (
             select string_agg(coalesce(left(r.result, 1), '-'), '' order by nr) as outcomes,
                    (array_agg(r.id order by nr desc) filter (where r.id is not null))[1] as report
             from unnest($2::uuid[]) with ordinality as execution (id, nr)
             left join test_report r on r.customer_id = $1 and r.execution_id = execution.id
                 and r.test_case_id = shown.test_case_id
         ) as results
         join test_report last on last.customer_id = $1 and last.id = results.report
         order by shown.test_case_id"
    )));
    let cases = cases.bind(customer).bind(executions).bind(part.after).bind(part.limit + 1);
    let cases = cases.bind(project);
    Ok(cases.fetch_all(db).await?)
}
