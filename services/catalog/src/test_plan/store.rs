//! Test plans in PostgreSQL. Every statement is bound to one customer. Who writes a plan has locked
//! its test case.

use assay_proto::{
    CustomerId, Fault, ProjectId, TestCaseId, TestPlanId, Variable,
    catalog::{AutomationStep, AutomationSteps, TestPlan, TestPlanInput},
    name_of,
};
use sqlx::{AssertSqlSafe, FromRow, PgExecutor, PgTransaction, types::Json};

use crate::project;

/// The columns of a test plan, with what the execution service has told of its reports.
const COLUMNS: &str = "test_plan.id, test_plan.version::text as data_version, test_plan.status,
     test_plan.variables, test_plan.input_file_id, test_plan.supporting_files_id,
     test_plan.automation_supporting_files_id, test_plan.automated_test_container_id,
     test_plan.test_case_id, test_plan.description, test_plan.revision, test_plan.test_type,
     test_plan.minimum_duration_in_min, test_plan.monitoring_message, test_plan.instances,
     (
         select coalesce(jsonb_agg(jsonb_build_object(
             'Id', id, 'ExecutionNumber', execution_number, 'Result', result, 'Status', status,
             'StartDateTime', start_date_time, 'FinishDateTime', finish_date_time,
             'AverageDurationInSec', average_duration_in_sec
         ) order by execution_number desc), '[]')
         from (
             select id, execution_number, result, status, start_date_time, finish_date_time,
                    average_duration_in_sec
             from test_report
             where customer_id = test_plan.customer_id and test_plan_id = test_plan.id
             order by execution_number desc
             limit 100
         ) latest
     ) as test_reports,
     (
         select coalesce(jsonb_agg(jsonb_build_object(
             'ExecutionNumber', execution_number, 'Result', result,
             'AverageDurationInSec', average_duration_in_sec
         ) order by execution_number desc), '[]')
         from (
             select execution_number, result, average_duration_in_sec
             from test_report
             where customer_id = test_plan.customer_id and test_plan_id = test_plan.id
             order by execution_number desc
             limit 10
         ) latest
     ) as execution_statistics";

/// A plan that nobody else can change meanwhile.
#[derive(FromRow)]
pub(super) struct Locked {
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
    let live = project::store::is_live("test_case.project_id");
    let plan = sqlx::query_as(AssertSqlSafe(format!(
        "select {COLUMNS} from test_plan
         join test_case on test_case.customer_id = $1 and test_case.id = test_plan.test_case_id
         where test_plan.customer_id = $1 and test_plan.id = $2 and test_plan.deleted_at is null
           and ($3::uuid is null or test_case.project_id = $3)
           and ($4::uuid is null or test_case.id = $4) and {live}"
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
) -> Result<Locked, Fault> {
    let plan = sqlx::query_as(AssertSqlSafe(format!(
        "select {COLUMNS}, frozen_at is not null as is_frozen from test_plan
         where customer_id = $1 and id = $2 and test_case_id = $3 and deleted_at is null
         for no key update"
    )));
    plan.bind(customer)
        .bind(id)
        .bind(case)
        .fetch_optional(&mut **tx)
        .await?
        .ok_or(Fault::NotFound("test plan"))
}

/// Adds a plan with the next revision. `variables` are the plan's, ready to be stored.
pub(super) async fn insert(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    case: TestCaseId,
    id: TestPlanId,
    plan: &TestPlanInput,
    variables: &[Variable],
) -> Result<TestPlan, Fault> {
    let statement = format!(
        "insert into test_plan (customer_id, test_case_id, id, revision, status, test_type,
             instances, minimum_duration_in_min, description, monitoring_message, input_file_id,
             supporting_files_id, automation_supporting_files_id, automated_test_container_id,
             variables)
         values ($1, $2, $3,
             (select coalesce(max(revision), 0) + 1 from test_plan
              where customer_id = $1 and test_case_id = $2),
             $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)
         returning {COLUMNS}"
    );
    let inserted = sqlx::query_as(AssertSqlSafe(statement))
        .bind(customer)
        .bind(case)
        .bind(id)
        .bind(name_of(plan.status()))
        .bind(name_of(plan.test_type()))
        .bind(plan.instances)
        .bind(plan.minimum_duration_in_min)
        .bind(&plan.description)
        .bind(&plan.monitoring_message)
        .bind(&plan.input_file_id)
        .bind(&plan.supporting_files_id)
        .bind(&plan.automation_supporting_files_id)
        .bind(&plan.automated_test_container_id)
        .bind(Json(variables))
        .fetch_one(&mut **tx)
        .await?;
    show_last_status(tx, customer, case).await?;
    Ok(inserted)
}

/// Replaces what a client may write of a locked plan. `variables` are the plan's, ready to be
/// stored.
pub(super) async fn update(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    case: TestCaseId,
    id: TestPlanId,
    plan: &TestPlanInput,
    variables: &[Variable],
) -> Result<TestPlan, Fault> {
    let statement = format!(
        "update test_plan
         set status = $4, test_type = $5, instances = $6, minimum_duration_in_min = $7,
             description = $8, monitoring_message = $9, input_file_id = $10,
             supporting_files_id = $11, automation_supporting_files_id = $12,
             automated_test_container_id = $13, variables = $14, version = version + 1
         where customer_id = $1 and test_case_id = $2 and id = $3
         returning {COLUMNS}"
    );
    let updated = sqlx::query_as(AssertSqlSafe(statement))
        .bind(customer)
        .bind(case)
        .bind(id)
        .bind(name_of(plan.status()))
        .bind(name_of(plan.test_type()))
        .bind(plan.instances)
        .bind(plan.minimum_duration_in_min)
        .bind(&plan.description)
        .bind(&plan.monitoring_message)
        .bind(&plan.input_file_id)
        .bind(&plan.supporting_files_id)
        .bind(&plan.automation_supporting_files_id)
        .bind(&plan.automated_test_container_id)
        .bind(Json(variables))
        .fetch_one(&mut **tx)
        .await?;
    show_last_status(tx, customer, case).await?;
    Ok(updated)
}

pub(super) async fn automation_steps(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    project: ProjectId,
    case: TestCaseId,
    id: TestPlanId,
) -> Result<AutomationSteps, Fault> {
    let live = project::store::is_live("$4");
    sqlx::query_as(AssertSqlSafe(format!(
        "select automation_steps as items, version::text as data_version from test_plan
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
    let replaced = sqlx::query_as(
        "update test_plan set automation_steps = $4, version = version + 1
         where customer_id = $1 and test_case_id = $2 and id = $3
         returning automation_steps as items, version::text as data_version",
    );
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

/// Copies the status of a case's highest revision to where lists find it.
async fn show_last_status(
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
