//! Records looked up in PostgreSQL. Every statement is bound to one customer.

use assay_proto::{
    CustomerId, EnvironmentId, Fault, ProjectId, TestCaseId, TestPlanId, TestSetId,
    catalog::{DebugProject, DebugTestCase, DebugTestPlan},
};
use sqlx::PgExecutor;

/// Makes sure that a project has these records. What is not asked for is not looked for.
pub(super) async fn find(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    project: ProjectId,
    case: Option<TestCaseId>,
    set: Option<TestSetId>,
    environment: Option<EnvironmentId>,
) -> Result<(), Fault> {
    let found: (bool, bool, bool, bool) = sqlx::query_as(
        "select exists (
                    select from project
                    where customer_id = $1 and id = $2 and deleted_at is null
                ),
                $3::uuid is null or exists (
                    select from test_case
                    where customer_id = $1 and project_id = $2 and id = $3 and deleted_at is null
                ),
                $4::uuid is null or exists (
                    select from test_set
                    where customer_id = $1 and project_id = $2 and id = $4 and deleted_at is null
                ),
                $5::uuid is null or exists (
                    select from environment
                    where customer_id = $1 and project_id = $2 and id = $5 and deleted_at is null
                )",
    )
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

/// A project, whether deleted or not.
pub(super) async fn project(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    id: ProjectId,
) -> Result<DebugProject, Fault> {
    sqlx::query_as(
        "select id, name, description, archived, deleted_at is not null as deleted
         from project
         where customer_id = $1 and id = $2",
    )
    .bind(customer)
    .bind(id)
    .fetch_optional(db)
    .await?
    .ok_or(Fault::NotFound("project"))
}

/// A test case, whether deleted or not.
pub(super) async fn test_case(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    project: ProjectId,
    id: TestCaseId,
) -> Result<DebugTestCase, Fault> {
    sqlx::query_as(
        "select id, identifier, name, description, archived, deleted_at is not null as deleted
         from test_case
         where customer_id = $1 and project_id = $2 and id = $3",
    )
    .bind(customer)
    .bind(project)
    .bind(id)
    .fetch_optional(db)
    .await?
    .ok_or(Fault::NotFound("test case"))
}

/// A test plan, whether deleted or not.
pub(super) async fn test_plan(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    case: TestCaseId,
    id: TestPlanId,
) -> Result<DebugTestPlan, Fault> {
    sqlx::query_as(
        "select p.id, p.revision, p.test_type, p.status, p.minimum_duration_in_min, p.instances,
                c.archived, p.deleted_at is not null as deleted
         from test_plan p
         join test_case c on c.customer_id = p.customer_id and c.id = p.test_case_id
         where p.customer_id = $1 and p.test_case_id = $2 and p.id = $3",
    )
    .bind(customer)
    .bind(case)
    .bind(id)
    .fetch_optional(db)
    .await?
    .ok_or(Fault::NotFound("test plan"))
}
