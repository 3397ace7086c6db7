//! Test plans in PostgreSQL. A transaction that writes a plan has locked its test case. Variables are
//! read and written as they are stored, with encrypted secrets.

use assay_proto::{
    CustomerId, Fault, InputColumns, ProjectId, TestCaseId, TestPlanId,
    catalog::{AutomationStep, AutomationSteps, TestPlan, TestPlanInput},
};
use sqlx::{AssertSqlSafe, FromRow, PgExecutor, PgTransaction, types::Json};

use crate::project;

/// The reports and statistics that the execution service has published of a plan, as columns. The ids of
/// reports have the time of their execution.
const REPORTS: &str = "(
         select coalesce(jsonb_agg(jsonb_build_object(
             'Id', id, 'ExecutionNumber', execution_number, 'Result', result, 'Status', status,
             'StartDateTime', start_date_time, 'FinishDateTime', finish_date_time,
             'AverageDurationInSec', average_duration_in_sec
         ) order by id desc), '[]')
         from (
             select id, execution_number, result, status, start_date_time, finish_date_time,
                    average_duration_in_sec
             from test_report
             where customer_id = test_plan.customer_id and test_plan_id = test_plan.id
             order by id desc
             limit 100
         ) latest
     ) as test_reports,
     (
         select coalesce(jsonb_agg(jsonb_build_object(
             'ExecutionNumber', execution_number, 'Result', result,
             'AverageDurationInSec', average_duration_in_sec
         ) order by id desc), '[]')
         from (
             select id, execution_number, result, average_duration_in_sec
             from test_report
             where customer_id = test_plan.customer_id and test_plan_id = test_plan.id
             order by id desc
             limit 10
         ) latest
     ) as execution_statistics";

/// Returns the columns of a plan, with what it shows of its reports.
fn columns() -> String {
    format!("{}, {REPORTS}", TestPlan::COLUMNS)
}

/// A plan that the transaction has locked.
#[derive(FromRow)]
pub(super) struct LockedPlan {
    #[sqlx(flatten)]
    pub(super) plan: TestPlan,
    /// Whether the plan was executed.
    pub(super) is_frozen: bool,
}

pub(super) async fn get(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    project: Option<ProjectId>,
    case: Option<TestCaseId>,
    id: TestPlanId,
) -> Result<TestPlan, Fault> {
    let (columns, live) = (columns(), project::store::is_live("test_case.project_id"));
    let plan = sqlx::query_as(AssertSqlSafe(format!(
        "select {columns} from test_plan
         where customer_id = $1 and id = $2 and deleted_at is null
           and exists (
               select from test_case
               where test_case.customer_id = $1 and test_case.id = test_plan.test_case_id
                 and ($3::uuid is null or test_case.project_id = $3)
                 and ($4::uuid is null or test_case.id = $4)
                 and {live}
           )"
    )));
    plan.bind(customer)
        .bind(id)
        .bind(project)
        .bind(case)
        .fetch_optional(db)
        .await?
        .ok_or(Fault::NotFound("test plan"))
}

pub(super) async fn lock(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    case: TestCaseId,
    id: TestPlanId,
) -> Result<LockedPlan, Fault> {
    let columns = columns();
    let plan = sqlx::query_as(AssertSqlSafe(format!(
        "select {columns}, frozen_at is not null as is_frozen from test_plan
         where customer_id = $1 and test_case_id = $2 and id = $3 and deleted_at is null
         for no key update"
    )));
    plan.bind(customer)
        .bind(case)
        .bind(id)
        .fetch_optional(&mut **tx)
        .await?
        .ok_or(Fault::NotFound("test plan"))
}

/// Adds a plan with the next revision.
pub(super) async fn insert(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    case: TestCaseId,
    id: TestPlanId,
    plan: &TestPlanInput,
) -> Result<TestPlan, Fault> {
    let (columns, values) = (TestPlanInput::COLUMNS, TestPlanInput::values(4));
    let returned = self::columns();
    let insert = sqlx::query_as(AssertSqlSafe(format!(
        "insert into test_plan (customer_id, test_case_id, id, revision, {columns})
         values ($1, $2, $3,
             (select coalesce(max(revision), 0) + 1 from test_plan
              where customer_id = $1 and test_case_id = $2),
             {values})
         returning {returned}"
    )));
    let insert = plan.bind(insert.bind(customer).bind(case).bind(id));
    let inserted = insert.fetch_one(&mut **tx).await?;
    update_last_status(tx, customer, case).await?;
    Ok(inserted)
}

/// Writes the fields of a locked plan.
pub(super) async fn update(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    case: TestCaseId,
    id: TestPlanId,
    plan: &TestPlanInput,
) -> Result<TestPlan, Fault> {
    let (assignments, returned) = (TestPlanInput::assignments(4), columns());
    let update = sqlx::query_as(AssertSqlSafe(format!(
        "update test_plan set {assignments}, version = version + 1
         where customer_id = $1 and test_case_id = $2 and id = $3
         returning {returned}"
    )));
    let update = plan.bind(update.bind(customer).bind(case).bind(id));
    let updated = update.fetch_one(&mut **tx).await?;
    update_last_status(tx, customer, case).await?;
    Ok(updated)
}

pub(super) async fn automation_steps(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    project: ProjectId,
    case: TestCaseId,
    id: TestPlanId,
) -> Result<AutomationSteps, Fault> {
    let (columns, live) = (AutomationSteps::COLUMNS, project::store::is_live("$4"));
    sqlx::query_as(AssertSqlSafe(format!(
        "select {columns} from test_plan
         where customer_id = $1 and id = $2 and test_case_id = $3 and deleted_at is null
           and exists (
               select from test_case where customer_id = $1 and id = $3 and project_id = $4
           )
           and {live}"
    )))
    .bind(customer)
    .bind(id)
    .bind(case)
    .bind(project)
    .fetch_optional(db)
    .await?
    .ok_or(Fault::NotFound("test plan"))
}

/// Replaces the automation steps of a locked plan.
pub(super) async fn replace_automation_steps(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    case: TestCaseId,
    id: TestPlanId,
    steps: &[AutomationStep],
) -> Result<AutomationSteps, Fault> {
    let returned = AutomationSteps::COLUMNS;
    let replaced = sqlx::query_as(AssertSqlSafe(format!(
        "update test_plan set automation_steps = $4, version = version + 1
         where customer_id = $1 and test_case_id = $2 and id = $3
         returning {returned}"
    )));
    let replaced = replaced.bind(customer).bind(case).bind(id).bind(Json(steps));
    Ok(replaced.fetch_one(&mut **tx).await?)
}

/// Copies the automation steps of one plan of a locked test case to another.
pub(super) async fn copy_automation_steps(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    case: TestCaseId,
    from: TestPlanId,
    to: TestPlanId,
) -> Result<(), Fault> {
    sqlx::query(
        "update test_plan set automation_steps = original.automation_steps
         from test_plan original
         where original.customer_id = $1 and original.test_case_id = $2 and original.id = $3
           and test_plan.customer_id = $1 and test_plan.test_case_id = $2 and test_plan.id = $4",
    )
    .bind(customer)
    .bind(case)
    .bind(from)
    .bind(to)
    .execute(&mut **tx)
    .await?;
    Ok(())
}

/// Copies the status of the highest revision to the test case, where lists show it.
async fn update_last_status(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    case: TestCaseId,
) -> Result<(), Fault> {
    sqlx::query(
        "update test_case
         set last_plan_status = (
             select status from test_plan
             where customer_id = $1 and test_case_id = $2 and deleted_at is null
             order by revision desc
             limit 1
         )
         where customer_id = $1 and id = $2",
    )
    .bind(customer)
    .bind(case)
    .execute(&mut **tx)
    .await?;
    Ok(())
}
