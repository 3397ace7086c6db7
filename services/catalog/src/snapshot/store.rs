//! The records that snapshots copy, in PostgreSQL.

use std::collections::HashMap;

use assay_proto::{
    CustomerId, EnvironmentId, Fault, ProjectId, SubjectId, TestCaseId, TestPlanId, Variable,
    catalog::{SnapshotEnvironment, SnapshotSubject, SnapshotTestCase},
};
use sqlx::{AssertSqlSafe, PgExecutor, PgTransaction, types::Json};

use super::rules::{self, ExecutableCase};

/// Size of a test case in a snapshot without the variables of its plan, in bytes.
pub(super) const CASE_SIZE: i64 = 512;

pub(super) async fn subject(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    project: ProjectId,
    id: SubjectId,
) -> Result<SnapshotSubject, Fault> {
    let columns = SnapshotSubject::COLUMNS;
    sqlx::query_as(AssertSqlSafe(format!(
        "select {columns} from subject
         where customer_id = $1 and id = $2 and project_id = $3 and deleted_at is null"
    )))
    .bind(customer)
    .bind(id)
    .bind(project)
    .fetch_optional(&mut **tx)
    .await?
    .ok_or_else(|| Fault::invalid(rules::SUBJECT, "no such subject in this project"))
}

pub(super) async fn environment(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    project: ProjectId,
    id: EnvironmentId,
) -> Result<SnapshotEnvironment, Fault> {
    let columns = SnapshotEnvironment::COLUMNS;
    sqlx::query_as(AssertSqlSafe(format!(
        "select {columns} from environment
         where customer_id = $1 and id = $2 and project_id = $3 and deleted_at is null"
    )))
    .bind(customer)
    .bind(id)
    .bind(project)
    .fetch_optional(&mut **tx)
    .await?
    .ok_or_else(|| Fault::invalid(rules::ENVIRONMENT, "no such environment in this project"))
}

/// Chooses and locks the highest plan that is ready of each of these test cases, in their order. Leaves
/// out test cases without such a plan.
///
/// The statements look up lists of ids one after another. The plan of a join of such lists depends on
/// statistics that a new database does not have, and could take seconds.
pub(super) async fn choose(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    cases: &[TestCaseId],
) -> Result<Vec<ExecutableCase>, Fault> {
    let ready = highest_ready(tx, customer, cases).await?;
    let plans: Vec<TestPlanId> = ready.into_values().collect();
    // In the order of their ids, so that snapshots do not deadlock.
    let chosen = sqlx::query_as::<_, ExecutableCase>(
        "select test_case_id, id, octet_length(variables::text)::bigint + $3 as size,
                jsonb_path_exists(variables, '$[*].ValidationRule ? (@ != \"\")') as has_rules
         from test_plan
         where customer_id = $1 and id = any($2)
           and status = 'ReadyForExecution' and deleted_at is null
         order by id
         for no key update",
    );
    let chosen = chosen.bind(customer).bind(plans).bind(CASE_SIZE).fetch_all(&mut **tx).await?;
    let mut chosen: HashMap<_, _> =
        chosen.into_iter().map(|chosen| (chosen.case, chosen)).collect();
    Ok(cases.iter().filter_map(|case| chosen.remove(case)).collect())
}

/// Freezes locked plans, which do not change any more once they are executed.
pub(super) async fn freeze(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    chosen: &[ExecutableCase],
) -> Result<(), Fault> {
    sqlx::query(
        "update test_plan set frozen_at = now()
         where customer_id = $1 and id = any($2) and frozen_at is null",
    )
    .bind(customer)
    .bind(chosen.iter().map(|chosen| chosen.plan).collect::<Vec<_>>())
    .execute(&mut **tx)
    .await?;
    Ok(())
}

/// Returns the highest plan that is ready of each of these test cases that has one.
async fn highest_ready(
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

/// Copies these test cases with their plans, in this order. Secrets are returned as they are stored.
pub(super) async fn copy(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    chosen: &[ExecutableCase],
) -> Result<Vec<SnapshotTestCase>, Fault> {
    // The limit lets PostgreSQL look up one test case after another, whatever its statistics are.
    let copies = sqlx::query_as::<_, SnapshotTestCase>(
        "select test_case_id as id, identifier, name, id as test_plan_id,
                revision as test_plan_revision, test_type, instances, minimum_duration_in_min,
                maximum_duration_in_min, variables, null as own_identifier
         from test_plan
         cross join lateral (
             select identifier, name from test_case
             where customer_id = $1 and id = test_plan.test_case_id
             limit 1
         ) as test_case
         where customer_id = $1 and id = any($2)",
    );
    let plans: Vec<_> = chosen.iter().map(|chosen| chosen.plan).collect();
    let copies = copies.bind(customer).bind(plans).fetch_all(db).await?;
    let mut copies: HashMap<_, _> =
        copies.into_iter().map(|copy| (copy.test_plan_id.clone(), copy)).collect();
    let copies = chosen.iter().map(|chosen| copies.remove(&chosen.plan.to_string()));
    // Otherwise, the project was deleted and purged at this moment.
    copies.collect::<Option<_>>().ok_or(Fault::NotFound("project"))
}

/// Returns the identifiers of these test cases.
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

/// Returns the variables of a subject as they are stored.
pub(super) async fn variables(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    subject: SubjectId,
) -> Result<Vec<Variable>, Fault> {
    let variables = sqlx::query_scalar::<_, Json<Vec<Variable>>>(
        "select variables from subject where customer_id = $1 and id = $2",
    );
    Ok(variables.bind(customer).bind(subject).fetch_one(&mut **tx).await?.0)
}
