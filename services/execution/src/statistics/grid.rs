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

/// Maximum length of the message of a failure, in characters.
const LONGEST_HEADLINE: i32 = 200;

/// The part of a grid that a client asks for.
pub(super) struct Part {
    branch: Option<String>,
    environment: Option<EnvironmentId>,
    executions: i32,
    limit: i32,
    after: Option<Position>,
    failing: bool,
}

/// The groups of test cases in a grid, in their order.
#[derive(Clone, Copy, PartialEq)]
enum Group {
    /// Those that fail in the last execution.
    Failing,
    Other,
}

/// The position of a test case in a grid; without one, that before its group.
#[derive(Clone, Copy)]
struct Position {
    group: Group,
    case: Option<TestCaseId>,
}

impl Position {
    fn of(group: Group, case: TestCaseId) -> Self {
        Self { group, case: Some(case) }
    }

    /// Reads the cursor of a request.
    fn read(cursor: &str) -> Result<Option<Self>, Fault> {
        let (group, id) = match cursor.strip_prefix(FAILING) {
            Some(id) => (Group::Failing, id),
            None => (Group::Other, cursor),
        };
        let case = TestCaseId::from_field_if_any("cursor", Some(id))?;
        Ok(case.map(|case| Self::of(group, case)))
    }

    fn cursor(self) -> Option<String> {
        let prefix = if self.group == Group::Failing { FAILING } else { "" };
        self.case.map(|case| format!("{prefix}{case}"))
    }
}

/// The first character of the cursor of a test case that fails in the last execution.
const FAILING: &str = "!";

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
        let after = Position::read(request.cursor.as_deref().unwrap_or_default());
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
    let ids = ids.map_err(Fault::internal)?;
    let mut shown = shown(db, customer, project, &ids, part).await?;
    let limit = usize::try_from(part.limit).unwrap_or_default();
    let has_more = shown.len() > limit;
    shown.truncate(limit);
    let next_cursor = shown.last().filter(|_| has_more).and_then(|last| last.cursor());
    let shown: Vec<_> = shown.into_iter().filter_map(|position| position.case).collect();
    let cases = cases(db, customer, &ids, &shown).await?;
    Ok(Grid { executions, cases, next_cursor })
}

/// Returns the latest executions of a set, the latest last. Those of launches that were merged into another one are
/// left out: it shows their results.
async fn executions(
    db: &PgPool,
    customer: CustomerId,
    set: TestSetId,
    part: &Part,
) -> Result<Vec<GridExecution>, Fault> {
    let executions = sqlx::query_as(
        "select * from (
             select id, request_time, result, status, branch, build, commit, environment_name,
                    test_cases_failed + test_cases_with_error as failures
             from live_execution
             where customer_id = $1 and test_set_id = $2 and ($3::text is null or branch = $3)
               and ($4::uuid is null or environment_id = $4)
               and not is_merged
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

/// Returns the ids of test cases in the order of a grid, one more than the limit if there are more.
async fn shown(
    db: &PgPool,
    customer: CustomerId,
    project: ProjectId,
    executions: &[Uuid],
    part: &Part,
) -> Result<Vec<Position>, Fault> {
    let Some(last) = executions.last() else { return Ok(Vec::new()) };
    let most = part.limit + 1;
    let mut shown = Vec::new();
    let after = part.after.unwrap_or(Position { group: Group::Failing, case: None });
    if after.group == Group::Failing {
        let failing = failing(db, customer, project, *last, after.case, most).await?;
        shown.extend(failing.into_iter().map(|case| Position::of(Group::Failing, case)));
    }
    let rest = most - i32::try_from(shown.len()).map_err(Fault::internal)?;
    if rest > 0 {
        let after = after.case.filter(|_| after.group == Group::Other);
        let others = others(db, customer, project, executions, after, rest, part.failing).await?;
        shown.extend(others.into_iter().map(|case| Position::of(Group::Other, case)));
    }
    Ok(shown)
}

/// An index has only the reports that have changed, among which are those that fail.
const FAILS: &str = "change <> 'None' and result in ('Failed', 'Error')";

/// Returns test cases that fail in an execution, in the order of their ids. Deleted ones are left out.
async fn failing(
    db: &PgPool,
    customer: CustomerId,
    project: ProjectId,
    execution: Uuid,
    after: Option<TestCaseId>,
    limit: i32,
) -> Result<Vec<TestCaseId>, Fault> {
    let is_not_deleted = is_not_deleted("$5", "test_case_id");
    let cases = sqlx::query_scalar(AssertSqlSafe(format!(
        "select test_case_id from test_report
         where customer_id = $1 and execution_id = $2 and {FAILS}
           and test_case_id > coalesce($3, '00000000-0000-0000-0000-000000000000')
           and {is_not_deleted}
         order by test_case_id
         limit $4"
    )));
    let cases = cases.bind(customer).bind(execution).bind(after).bind(limit).bind(project);
    Ok(cases.fetch_all(db).await?)
}

/// Returns test cases that do not fail in the last of the executions, in the order of their ids, or those
/// of them that fail in another one. Deleted ones are left out.
async fn others(
    db: &PgPool,
    customer: CustomerId,
    project: ProjectId,
    executions: &[Uuid],
    after: Option<TestCaseId>,
    limit: i32,
    only_failing: bool,
) -> Result<Vec<TestCaseId>, Fault> {
    let is_not_deleted = is_not_deleted("$5", "test_case_id");
    let failing = if only_failing { format!("and {FAILS}") } else { String::new() };
    let cases = sqlx::query_scalar(AssertSqlSafe(format!(
        "select distinct test_case_id
         from unnest($2::uuid[]) as execution (id)
         cross join lateral (
             select test_case_id from test_report
             where customer_id = $1 and execution_id = execution.id
               and test_case_id > coalesce($3, '00000000-0000-0000-0000-000000000000')
               and test_case_id not in (
                   select test_case_id from test_report
                   where customer_id = $1 and execution_id = $6 and {FAILS}
               )
               and {is_not_deleted} {failing}
             order by test_case_id
             limit $4
         ) as r
         order by test_case_id
         limit $4"
    )));
    let cases = cases.bind(customer).bind(executions).bind(after).bind(limit).bind(project);
    Ok(cases.bind(executions.last()).fetch_all(db).await?)
}

/// Returns test cases with their results in executions, in this order.
async fn cases(
    db: &PgPool,
    customer: CustomerId,
    executions: &[Uuid],
    cases: &[TestCaseId],
) -> Result<Vec<GridCase>, Fault> {
    let cases = sqlx::query_as(
        "select shown.test_case_id, last.test_case_identifier, last.test_case_name,
                coalesce(last.suites, '{}') as suites, results.outcomes, results.failures
         from unnest($3::uuid[]) with ordinality as shown (test_case_id, place)
         cross join lateral (
             select string_agg(coalesce(left(r.result, 1), '-'), '' order by nr) as outcomes,
                    (array_agg(r.id order by nr desc) filter (where r.id is not null))[1] as report,
                    coalesce(jsonb_agg(jsonb_build_object(
                        'ExecutionId', r.execution_id, 'TestReportId', r.id,
                        'Headline', left(coalesce(f.headline, ''), $4)
                    ) order by nr) filter (where r.result in ('Failed', 'Error')), '[]') as failures
             from unnest($2::uuid[]) with ordinality as execution (id, nr)
             left join test_report r on r.customer_id = $1 and r.execution_id = execution.id
                 and r.test_case_id = shown.test_case_id
             left join lateral (
                 select headline from failure
                 where customer_id = $1 and test_report_id = r.id
                 order by instance_nr
                 limit 1
             ) as f on r.result in ('Failed', 'Error')
         ) as results
         join test_report last on last.customer_id = $1 and last.id = results.report
         order by place",
    )
    .bind(customer)
    .bind(executions)
    .bind(cases)
    .bind(LONGEST_HEADLINE);
    Ok(cases.fetch_all(db).await?)
}
