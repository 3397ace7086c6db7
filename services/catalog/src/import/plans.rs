//! The test plans of imports: those of test cases that have none. The number of statements does not
//! depend on the number of plans.

use std::collections::HashSet;

use assay_auth::Caller;
use assay_events::publish_all;
use assay_proto::{
    CustomerId, Fault, PlanStatus, ProjectId, TestCaseId, TestPlanId,
    catalog::{AutomationStep, TestPlanInput},
    name_of,
};
use assay_records::{Action, Check};
use sqlx::{PgTransaction, types::Json};
use uuid::Uuid;

use super::rows::Row;
use crate::{
    event::EventSource,
    file::reference::is_id,
    secrets::Secrets,
    test_plan::{container::CONTAINER, rules},
};

/// A plan with its steps, checked and with encrypted secrets.
pub(super) struct NewPlan {
    /// The index of the row of its test case.
    row: usize,
    id: TestPlanId,
    revision: i32,
    plan: TestPlanInput,
    steps: Vec<AutomationStep>,
}

/// Checks the plans of rows. Fails with the violations of all of them.
pub(super) fn valid(
    secrets: &Secrets,
    caller: &Caller,
    rows: &[Row],
) -> Result<Vec<NewPlan>, Fault> {
    let (mut check, mut plans) = (Check::default(), Vec::new());
    for (index, row) in rows.iter().enumerate() {
        for (revision, input) in (1..).zip(row.plans.iter().cloned()) {
            let id = TestPlanId::new();
            let at = format!("{index}/TestPlans/{}", revision - 1);
            let input_of_plan = input.test_plan.unwrap_or_default();
            let status = input_of_plan.status.unwrap_or(PlanStatus::New.into());
            let plan = TestPlanInput { status: Some(status), ..rules::new(input_of_plan) };
            let stored = rules::valid(plan).and_then(|plan| {
                let secrets = secrets.of("test-plan", id, caller);
                let variables = secrets.store_all(plan.variables, &[])?;
                Ok(TestPlanInput { variables, ..plan })
            });
            let plan = within(stored, &format!("{at}/TestPlan"), &mut check)?;
            let steps = rules::steps(input.automation_steps);
            let steps = within(steps, &format!("{at}/AutomationSteps"), &mut check)?;
            if let (Some(plan), Some(steps)) = (plan, steps) {
                plans.push(NewPlan { row: index, id, revision, plan, steps });
            }
        }
    }
    check.done().map(|()| plans)
}

/// Returns a checked part of a row, or adds its violations to those of the import.
fn within<T>(part: Result<T, Fault>, at: &str, check: &mut Check) -> Result<Option<T>, Fault> {
    match part {
        Ok(part) => Ok(Some(part)),
        Err(Fault::Invalid(violations)) => {
            for violation in violations {
                check.refuse(format!("{at}/{}", violation.field), violation.problem);
            }
            Ok(None)
        }
        Err(fault) => Err(fault),
    }
}

/// Adds the plans of test cases that have none, and their events. `cases` are those of the rows.
pub(super) async fn add(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    project: ProjectId,
    cases: &[TestCaseId],
    plans: &[NewPlan],
) -> Result<(), Fault> {
    if plans.is_empty() {
        return Ok(());
    }
    let sought: HashSet<TestCaseId> = plans.iter().map(|plan| cases[plan.row]).collect();
    let sought: Vec<TestCaseId> = sought.into_iter().collect();
    let planned = sqlx::query_scalar(
        "select distinct test_case_id from test_plan
         where customer_id = $1 and test_case_id = any($2)",
    );
    let planned = planned.bind(customer).bind(&sought).persistent(false);
    let planned: HashSet<TestCaseId> = planned.fetch_all(&mut **tx).await?.into_iter().collect();
    let new: Vec<_> = plans.iter().filter(|plan| !planned.contains(&cases[plan.row])).collect();
    insert(tx, customer, cases, &new).await?;
    refer(tx, customer, project, &new).await?;
    let created: Vec<_> = new
        .iter()
        .map(|new| EventSource::TestPlan(Some(project), cases[new.row], new.id))
        .collect();
    publish_all(tx, EventSource::events(&created, Action::Created, customer, project)).await
}

/// Records the files of the project that new plans refer to. An import may come from another installation, so
/// the ids of files that the project does not have stay as they are, and so do references of images.
async fn refer(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    project: ProjectId,
    new: &[&NewPlan],
) -> Result<(), Fault> {
    let fields = |new: &NewPlan| {
        let (id, plan) = (new.id, &new.plan);
        let fields = [
            ("InputFileId", &plan.input_file_id),
            ("SupportingFilesId", &plan.supporting_files_id),
            ("AutomationSupportingFilesId", &plan.automation_supporting_files_id),
            (CONTAINER, &plan.automated_test_container_id),
        ];
        let fields = fields.map(|(name, text)| {
            let file = text.as_deref().filter(|text| is_id(text))?.parse::<Uuid>().ok()?;
            Some((id, file, name))
        });
        fields.into_iter().flatten()
    };
    let named: Vec<_> = new.iter().flat_map(|new| fields(new)).collect();
    if named.is_empty() {
        return Ok(());
    }
    sqlx::query(
        "insert into file_reference (customer_id, file_id, noun, record_id, field)
         select $1, file.id, 'test plan', named.plan_id, named.field
         from unnest($3::uuid[], $4::uuid[], $5::text[]) as named (plan_id, file_id, field)
         join file on file.customer_id = $1 and file.project_id = $2 and file.id = named.file_id",
    )
    .bind(customer)
    .bind(project)
    .bind(named.iter().map(|(plan, ..)| *plan).collect::<Vec<_>>())
    .bind(named.iter().map(|(_, file, _)| *file).collect::<Vec<_>>())
    .bind(named.iter().map(|(.., field)| *field).collect::<Vec<_>>())
    .execute(&mut **tx)
    .await?;
    Ok(())
}

async fn insert(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    cases: &[TestCaseId],
    new: &[&NewPlan],
) -> Result<(), Fault> {
    fn column<T>(new: &[&NewPlan], of: impl Fn(&NewPlan) -> T) -> Vec<T> {
        new.iter().map(|new| of(new)).collect()
    }
    fn text(new: &[&NewPlan], of: fn(&TestPlanInput) -> &Option<String>) -> Vec<Option<String>> {
        new.iter().map(|new| of(&new.plan).clone()).collect()
    }
    sqlx::query(
        "with added as (
             insert into test_plan (customer_id, test_case_id, id, revision, status, test_type,
                 instances, minimum_duration_in_min, description, monitoring_message,
                 input_file_id, supporting_files_id, automation_supporting_files_id,
                 automated_test_container_id, variables, automation_steps,
                 maximum_duration_in_min)
             select $1, plan.*
             from unnest($2::uuid[], $3::uuid[], $4::int[], $5::text[], $6::text[], $7::int[],
                 $8::float8[], $9::text[], $10::text[], $11::text[], $12::text[], $13::text[],
                 $14::text[], $15::jsonb[], $16::jsonb[], $17::float8[]) as plan
             returning test_case_id, revision, status
         )
         update test_case set last_plan_status = latest.status
         from (
             select distinct on (test_case_id) test_case_id, status from added
             order by test_case_id, revision desc
         ) as latest
         where customer_id = $1 and id = latest.test_case_id",
    )
    .bind(customer)
    .bind(column(new, |new| cases[new.row]))
    .bind(column(new, |new| new.id))
    .bind(column(new, |new| new.revision))
    .bind(column(new, |new| name_of(new.plan.status())))
    .bind(column(new, |new| name_of(new.plan.test_type())))
    .bind(column(new, |new| new.plan.instances))
    .bind(column(new, |new| new.plan.minimum_duration_in_min))
    .bind(text(new, |plan| &plan.description))
    .bind(text(new, |plan| &plan.monitoring_message))
    .bind(text(new, |plan| &plan.input_file_id))
    .bind(text(new, |plan| &plan.supporting_files_id))
    .bind(text(new, |plan| &plan.automation_supporting_files_id))
    .bind(text(new, |plan| &plan.automated_test_container_id))
    .bind(new.iter().map(|new| Json(&new.plan.variables)).collect::<Vec<_>>())
    .bind(new.iter().map(|new| Json(&new.steps)).collect::<Vec<_>>())
    .bind(column(new, |new| new.plan.maximum_duration_in_min))
    .execute(&mut **tx)
    .await?;
    Ok(())
}
