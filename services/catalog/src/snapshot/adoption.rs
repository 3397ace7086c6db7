//! Test cases that a test tool has reported: made and included where they are new, so that their
//! results have a place. A few statements, however many they are.

use std::collections::HashMap;

use assay_events::publish_all;
use assay_proto::{
    CustomerId, Fault, ProjectId, TestCaseId, TestPlanId, TestSetId, catalog::ReportedTestCase,
};
use assay_records::Action;
use sqlx::PgTransaction;

use super::store;
use crate::{record::Record, test_case::identifiers, test_set};

/// Makes sure that there is a live test case with a plan that is ready for each of these, and that
/// the locked set includes them all. Returns their ids, in the order of `reported`.
pub(super) async fn adopt(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    project: ProjectId,
    set: TestSetId,
    reported: &[ReportedTestCase],
) -> Result<Vec<TestCaseId>, Fault> {
    identifiers::claim(tx, customer, project).await?;
    let mut live = lock(tx, customer, project, reported).await?;
    let missing: Vec<_> =
        reported.iter().filter(|case| !live.contains_key(&case.identifier)).collect();
    let created = create(tx, customer, project, &missing).await?;
    if !missing.is_empty() {
        live = lock(tx, customer, project, reported).await?;
    }
    let cases: Option<Vec<_>> =
        reported.iter().map(|case| live.get(&case.identifier).copied()).collect();
    // One was archived in the moment between two statements; the next attempt makes another.
    let cases = cases.ok_or(Fault::Unavailable("a test case"))?;
    let planned = plan(tx, customer, &cases).await?;

    let mut events = Vec::with_capacity(created.len() + planned.len());
    for id in created {
        events.push(Record::TestCase(project, id).was(Action::Created, customer)?);
    }
    for (case, id) in planned {
        events.push(Record::TestPlan(case, id).was(Action::Created, customer)?);
    }
    publish_all(tx, &events).await?;
    if test_set::members::include(tx, customer, set, &cases).await? > 0 {
        test_set::members_changed(tx, customer, project, set).await?;
    }
    Ok(cases)
}

/// Locks the live cases with these identifiers, in the order of their ids, so that nobody waits for
/// each other. The statement is planned for these very identifiers, as that of an import is.
async fn lock(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    project: ProjectId,
    reported: &[ReportedTestCase],
) -> Result<HashMap<String, TestCaseId>, Fault> {
    let identifiers: Vec<_> = reported.iter().map(|case| case.identifier.as_str()).collect();
    let live = sqlx::query_as::<_, (String, TestCaseId)>(
        "select identifier, id from test_case
         where customer_id = $1 and project_id = $2 and identifier = any($3) and live
         order by id
         for no key update",
    );
    let live = live.bind(customer).bind(project).bind(identifiers).persistent(false);
    let live = live.fetch_all(&mut **tx).await?;
    Ok(live.into_iter().collect())
}

/// Adds test cases, which get a plan at once, unless someone else just did. Returns what is new.
async fn create(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    project: ProjectId,
    missing: &[&ReportedTestCase],
) -> Result<Vec<TestCaseId>, Fault> {
    let created = sqlx::query_scalar(
        "insert into test_case
             (customer_id, project_id, id, identifier, name, description, last_plan_status)
         select $1, $2, id, identifier, name, '', 'ReadyForExecution'
         from unnest($3::uuid[], $4::text[], $5::text[]) as missing (id, identifier, name)
         on conflict (customer_id, project_id, identifier) where live do nothing
         returning id",
    );
    let created = created
        .bind(customer)
        .bind(project)
        .bind(missing.iter().map(|_| TestCaseId::new()).collect::<Vec<_>>())
        .bind(missing.iter().map(|case| case.identifier.as_str()).collect::<Vec<_>>())
        .bind(missing.iter().map(|case| case.name.as_str()).collect::<Vec<_>>());
    Ok(created.fetch_all(&mut **tx).await?)
}

/// Adds a plan that is ready, and executed at once, to the locked cases that have none. Returns what
/// is new.
async fn plan(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    cases: &[TestCaseId],
) -> Result<Vec<(TestCaseId, TestPlanId)>, Fault> {
    let ready = store::highest_ready(tx, customer, cases).await?;
    let missing: Vec<TestCaseId> =
        cases.iter().filter(|case| !ready.contains_key(case)).copied().collect();
    let planned = sqlx::query_as(
        "insert into test_plan (customer_id, test_case_id, id, revision, status, test_type,
             instances, minimum_duration_in_min, frozen_at)
         select $1, test_case_id, id,
             (select coalesce(max(revision), 0) + 1 from test_plan
              where customer_id = $1 and test_case_id = missing.test_case_id),
             'ReadyForExecution', 'Default', 1, 0, now()
         from unnest($2::uuid[], $3::uuid[]) as missing (test_case_id, id)
         returning test_case_id, id",
    );
    let planned = planned
        .bind(customer)
        .bind(&missing)
        .bind(missing.iter().map(|_| TestPlanId::new()).collect::<Vec<_>>())
        .fetch_all(&mut **tx)
        .await?;
    sqlx::query(
        "update test_case set last_plan_status = 'ReadyForExecution'
         where customer_id = $1 and id = any($2)
           and last_plan_status is distinct from 'ReadyForExecution'",
    )
    .bind(customer)
    .bind(&missing)
    .execute(&mut **tx)
    .await?;
    Ok(planned)
}
