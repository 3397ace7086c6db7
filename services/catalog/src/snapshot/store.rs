//! What snapshots copy, in PostgreSQL. Every statement is bound to one customer.

use std::collections::HashMap;

use assay_proto::{
    CustomerId, EnvironmentId, Fault, ProjectId, SubjectId, TestCaseId, TestPlanId,
    catalog::{SnapshotEnvironment, SnapshotSubject, SnapshotTestCase},
};
use sqlx::PgTransaction;

use super::rules;
use crate::secrets;

pub(super) async fn subject(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    project: ProjectId,
    id: SubjectId,
) -> Result<SnapshotSubject, Fault> {
    sqlx::query_as(
        "select id, identifier, name, needs_public_ip from subject
         where customer_id = $1 and id = $2 and project_id = $3 and deleted_at is null",
    )
    .bind(customer)
    .bind(id)
    .bind(project)
    .fetch_optional(&mut **tx)
    .await?
    .ok_or_else(|| Fault::invalid(rules::SUBJECT, "must be the id of a subject of the project"))
}

pub(super) async fn environment(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    project: ProjectId,
    id: EnvironmentId,
) -> Result<SnapshotEnvironment, Fault> {
    sqlx::query_as(
        "select id, name, target_group from environment
         where customer_id = $1 and id = $2 and project_id = $3 and deleted_at is null",
    )
    .bind(customer)
    .bind(id)
    .bind(project)
    .fetch_optional(&mut **tx)
    .await?
    .ok_or_else(|| {
        Fault::invalid(rules::ENVIRONMENT, "must be the id of an environment of the project")
    })
}

/// Copies these cases, in this order, with their highest plans that are ready, and freezes the
/// plans. Leaves out the cases that have none.
///
/// Several statements, each led by a list of ids: what joins such lists depends on statistics that
/// a new database does not have, and can take seconds without.
pub(super) async fn freeze(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    cases: &[TestCaseId],
) -> Result<Vec<SnapshotTestCase>, Fault> {
    let ready = highest_ready(tx, customer, cases).await?;
    let plans: Vec<TestPlanId> = ready.into_values().collect();
    let mut copies: HashMap<String, SnapshotTestCase> =
        copy(tx, customer, &plans).await?.into_iter().map(|copy| (copy.id.clone(), copy)).collect();
    sqlx::query(
        "update test_plan set frozen_at = now()
         where customer_id = $1 and id = any($2) and frozen_at is null",
    )
    .bind(customer)
    .bind(plans)
    .execute(&mut **tx)
    .await?;
    Ok(cases.iter().filter_map(|case| copies.remove(&case.to_string())).collect())
}

/// The highest plan that is ready of each of these cases that has one.
pub(super) async fn highest_ready(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    cases: &[TestCaseId],
) -> Result<HashMap<TestCaseId, TestPlanId>, Fault> {
    let plans = sqlx::query_as::<_, (TestCaseId, TestPlanId)>(
        "select distinct on (test_case_id) test_case_id, id from test_plan
         where customer_id = $1 and test_case_id = any($2)
           and status = 'ReadyForExecution' and deleted_at is null
         order by test_case_id, revision desc",
    );
    let plans = plans.bind(customer).bind(cases).fetch_all(&mut **tx).await?;
    Ok(plans.into_iter().collect())
}

/// Locks plans in the order of their ids, so that two snapshots never wait for each other, and
/// copies those that are still ready.
async fn copy(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    plans: &[TestPlanId],
) -> Result<Vec<SnapshotTestCase>, Fault> {
    let copies = sqlx::query_as(
        "select test_case_id as id,
                (select identifier from test_case
                 where customer_id = $1 and id = test_plan.test_case_id) as identifier,
                (select name from test_case
                 where customer_id = $1 and id = test_plan.test_case_id) as name,
                id as test_plan_id, revision as test_plan_revision, test_type, instances,
                minimum_duration_in_min, variables
         from test_plan
         where customer_id = $1 and id = any($2)
           and status = 'ReadyForExecution' and deleted_at is null
         order by test_plan.id
         for no key update of test_plan",
    );
    let mut copies: Vec<SnapshotTestCase> =
        copies.bind(customer).bind(plans).fetch_all(&mut **tx).await?;
    for copy in &mut copies {
        copy.variables = secrets::masked(&copy.variables);
    }
    Ok(copies)
}

/// What users call these cases.
pub(super) async fn identifiers(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    cases: &[TestCaseId],
) -> Result<Vec<String>, Fault> {
    if cases.is_empty() {
        return Ok(Vec::new());
    }
    let identifiers = sqlx::query_scalar(
        "select identifier from test_case where customer_id = $1 and id = any($2) order by id",
    );
    Ok(identifiers.bind(customer).bind(cases).fetch_all(&mut **tx).await?)
}
