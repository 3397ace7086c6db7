//! Adoption of the test cases that a test tool has reported: new ones are created and included in the
//! test set. The number of statements does not depend on the number of test cases.

use std::collections::HashMap;

use assay_events::publish_all;
use assay_proto::{
    CustomerId, Fault, PlanStatus, ProjectId, TestCaseId, TestPlanId, TestSetId,
    catalog::ReportedTestCase,
};
use assay_records::Action;
use sqlx::PgTransaction;

use super::store;
use crate::{
    event::EventSource,
    test_case::{
        identifiers,
        store::{NewTestCase, insert_all},
    },
    test_set,
};

/// Creates the reported test cases that do not exist, gives each of them a plan that is ready, and
/// includes all in the locked set. Returns their ids, in the order of `reported`.
pub(super) async fn adopt(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    project: ProjectId,
    set: TestSetId,
    reported: &[ReportedTestCase],
) -> Result<Vec<TestCaseId>, Fault> {
    identifiers::lock_numbers(tx, customer, project).await?;
    let mut live = lock(tx, customer, project, reported).await?;
    let missing: Vec<_> =
        reported.iter().filter(|case| !live.contains_key(&case.identifier)).collect();
    let new: Vec<_> = missing.iter().map(|case| new_test_case(case)).collect();
    let ready = Some(PlanStatus::ReadyForExecution);
    let created = insert_all(tx, customer, project, ready, &new).await?;
    if !missing.is_empty() {
        live = lock(tx, customer, project, reported).await?;
    }
    let cases: Option<Vec<_>> =
        reported.iter().map(|case| live.get(&case.identifier).copied()).collect();
    // A test case was archived between two statements. The next attempt creates another one.
    let cases = cases.ok_or(Fault::Unavailable("a test case"))?;
    let planned = plan(tx, customer, &cases).await?;

    let mut events = Vec::with_capacity(created.len() + planned.len());
    for id in created {
        events.push(EventSource::TestCase(project, id).event(Action::Created, customer)?);
    }
    for (case, id) in planned {
        events.push(EventSource::TestPlan(case, id).event(Action::Created, customer)?);
    }
    publish_all(tx, &events).await?;
    if test_set::members::include(tx, customer, set, &cases).await? > 0 {
        test_set::members_changed(tx, customer, project, set).await?;
    }
    Ok(cases)
}

/// Locks the active test cases with these identifiers, in the order of their ids, so that transactions
/// do not deadlock. The statement is not prepared, for the reason given at that of imports.
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

fn new_test_case(case: &ReportedTestCase) -> NewTestCase<'_> {
    NewTestCase {
        id: TestCaseId::new(),
        identifier: &case.identifier,
        name: &case.name,
        description: "",
    }
}

/// Adds a plan that is ready, and frozen since it is executed at once, to the locked test cases that
/// have none. Returns the new plans.
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
