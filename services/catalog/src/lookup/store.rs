//! Lookups in PostgreSQL.

use assay_proto::{
    CustomerId, EnvironmentId, Fault, ProjectId, TestCaseId, TestPlanId, TestSetId,
    catalog::{
        DebugProject, DebugTestCase, DebugTestPlan, Gate, MetricsSettings, ProjectOfCustomer,
        TestCaseName,
    },
};
use sqlx::{AssertSqlSafe, PgExecutor, types::Json};

/// Fails if a project does not have all of these records.
pub(super) async fn find(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    project: ProjectId,
    case: Option<TestCaseId>,
    set: Option<TestSetId>,
    environment: Option<EnvironmentId>,
) -> Result<(), Fault> {
    // With `$3 is null or exists (…)`, PostgreSQL would plan each execution, for longer than it reads.
    let of_project = |is_present: bool, table: &str, id: &str| {
        if !is_present {
            return format!("{id}::uuid is null");
        }
        format!(
            "exists (
                select from {table}
                where customer_id = $1 and project_id = $2 and id = {id} and deleted_at is null
            )"
        )
    };
    let case_exists = of_project(case.is_some(), "test_case", "$3");
    let set_exists = of_project(set.is_some(), "test_set", "$4");
    let environment_exists = of_project(environment.is_some(), "environment", "$5");
    let found: (bool, bool, bool, bool) = sqlx::query_as(AssertSqlSafe(format!(
        "select exists (
                    select from project
                    where customer_id = $1 and id = $2 and deleted_at is null
                ),
                {case_exists}, {set_exists}, {environment_exists}"
    )))
    .bind(customer)
    .bind(project)
    .bind(case)
    .bind(set)
    .bind(environment)
    .fetch_one(db)
    .await?;
    match found {
        (true, true, true, true) => Ok(()),
        (false, ..) => Err(Fault::NotFound("project")),
        (_, false, ..) => Err(Fault::NotFound("test case")),
        (_, _, false, _) => Err(Fault::NotFound("test set")),
        (.., false) => Err(Fault::NotFound("environment")),
    }
}

/// Returns those of some identifiers that active test cases of a project have, also as aliases.
pub(super) async fn identifiers(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    project: ProjectId,
    identifiers: &[String],
) -> Result<Vec<String>, Fault> {
    let found = sqlx::query_scalar(
        "select identifier from test_case
         where customer_id = $1 and project_id = $2 and identifier = any($3) and live
         union
         select a.identifier from test_case_alias a
         join test_case c on c.customer_id = $1 and c.id = a.test_case_id and c.live
         where a.customer_id = $1 and a.project_id = $2 and a.identifier = any($3)",
    );
    Ok(found.bind(customer).bind(project).bind(identifiers).fetch_all(db).await?)
}

/// Returns the identifier and the name of a test case of a project that exists.
pub(super) async fn test_case_name(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    project: ProjectId,
    id: TestCaseId,
) -> Result<TestCaseName, Fault> {
    let name = sqlx::query_as(
        "select c.identifier, c.name
         from test_case c
         join project p on p.customer_id = $1 and p.id = c.project_id and p.deleted_at is null
         where c.customer_id = $1 and c.project_id = $2 and c.id = $3 and c.deleted_at is null",
    );
    let name = name.bind(customer).bind(project).bind(id).fetch_optional(db).await?;
    name.ok_or(Fault::NotFound("test case"))
}

/// Returns those of some projects that were deleted.
pub(super) async fn deleted_projects(
    db: impl PgExecutor<'_>,
    projects: &[(CustomerId, ProjectId)],
) -> Result<Vec<ProjectOfCustomer>, Fault> {
    let (customers, ids): (Vec<CustomerId>, Vec<ProjectId>) = projects.iter().copied().unzip();
    let deleted = sqlx::query_as(
        "select customer_id, id as project_id
         from unnest($1::uuid[], $2::uuid[]) as asked (customer_id, id)
         join project using (customer_id, id)
         where deleted_at is not null",
    );
    Ok(deleted.bind(customers).bind(ids).fetch_all(db).await?)
}

/// Returns the settings of a project for its metrics.
pub(super) async fn metrics_settings(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    id: ProjectId,
) -> Result<MetricsSettings, Fault> {
    let columns = MetricsSettings::COLUMNS;
    sqlx::query_as(AssertSqlSafe(format!(
        "select {columns} from project where customer_id = $1 and id = $2 and deleted_at is null"
    )))
    .bind(customer)
    .bind(id)
    .fetch_optional(db)
    .await?
    .ok_or(Fault::NotFound("project"))
}

/// Returns the rules of a test set.
pub(super) async fn gate(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    project: ProjectId,
    set: TestSetId,
) -> Result<Gate, Fault> {
    let found = sqlx::query_as(
        "select s.gate
         from project p
         left join test_set s on s.customer_id = $1 and s.project_id = p.id and s.id = $3
             and s.deleted_at is null
         where p.customer_id = $1 and p.id = $2 and p.deleted_at is null",
    );
    let found: Option<(Option<Json<Gate>>,)> =
        found.bind(customer).bind(project).bind(set).fetch_optional(db).await?;
    let (gate,) = found.ok_or(Fault::NotFound("project"))?;
    Ok(gate.ok_or(Fault::NotFound("test set"))?.0)
}

/// Returns a project, whether deleted or not.
pub(super) async fn project(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    id: ProjectId,
) -> Result<DebugProject, Fault> {
    let columns = DebugProject::COLUMNS;
    sqlx::query_as(AssertSqlSafe(format!(
        "select {columns} from project where customer_id = $1 and id = $2"
    )))
    .bind(customer)
    .bind(id)
    .fetch_optional(db)
    .await?
    .ok_or(Fault::NotFound("project"))
}

/// Returns a test case, whether deleted or not.
pub(super) async fn test_case(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    project: ProjectId,
    id: TestCaseId,
) -> Result<DebugTestCase, Fault> {
    let columns = DebugTestCase::COLUMNS;
    sqlx::query_as(AssertSqlSafe(format!(
        "select {columns} from test_case where customer_id = $1 and project_id = $2 and id = $3"
    )))
    .bind(customer)
    .bind(project)
    .bind(id)
    .fetch_optional(db)
    .await?
    .ok_or(Fault::NotFound("test case"))
}

/// Returns a test plan, whether deleted or not.
pub(super) async fn test_plan(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    case: TestCaseId,
    id: TestPlanId,
) -> Result<DebugTestPlan, Fault> {
    let columns = DebugTestPlan::COLUMNS;
    sqlx::query_as(AssertSqlSafe(format!(
        "select {columns},
                (select archived from test_case where customer_id = $1 and id = $2) as archived
         from test_plan
         where customer_id = $1 and test_case_id = $2 and id = $3"
    )))
    .bind(customer)
    .bind(case)
    .bind(id)
    .fetch_optional(db)
    .await?
    .ok_or(Fault::NotFound("test plan"))
}
