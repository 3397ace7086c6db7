//! Adoption of the test cases that a test tool has reported: new ones are created and included in the
//! test set. The number of statements does not depend on the number of test cases.

use std::collections::{HashMap, HashSet};

use assay_events::publish_all;
use assay_proto::{
    CustomerId, Fault, PlanStatus, ProjectId, TestCaseId, TestPlanId, TestSetId,
    catalog::ReportedTestCase,
};
use assay_records::Action;
use sqlx::{FromRow, PgTransaction};

use super::{rules::ExecutableCase, store};
use crate::{
    event::EventSource,
    test_case::{
        aliases,
        classification::{self, Classified},
        store::{NewTestCase, insert_all},
    },
    test_set,
};

/// Test cases that were reported under an alias, with that identifier.
pub(super) type Aliases = HashMap<TestCaseId, String>;

/// Creates the reported test cases that do not exist, gives each of them a plan that is ready, and
/// includes all in the locked set of the project, which is locked for many changes. Returns them with
/// their locked and frozen plans, in the order of `reported`, and the identifiers that are aliases.
pub(super) async fn adopt(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    project: ProjectId,
    set: TestSetId,
    reported: &[ReportedTestCase],
) -> Result<(Vec<ExecutableCase>, Aliases), Fault> {
    let live = lock(tx, customer, project, reported).await?;
    let classified: HashSet<(TestCaseId, i64)> =
        live.iter().filter_map(|case| Some((case.id, case.classification_digest?))).collect();
    let mut known: HashMap<_, _> =
        live.into_iter().map(|case| (case.identifier, case.id)).collect();
    let mut aliases = resolve_aliases(tx, customer, project, reported, &mut known).await?;
    aliases.extend(continue_former(tx, customer, project, reported, &mut known).await?);
    let is_new = |case: &&ReportedTestCase| !known.contains_key(&case.identifier);
    let new: Vec<_> = reported.iter().filter(is_new).map(new_test_case).collect();
    let ready = Some(PlanStatus::ReadyForExecution);
    if insert_all(tx, customer, project, ready, &new).await?.len() < new.len() {
        // Another transaction has just added one of them, which the next attempt finds.
        return Err(Fault::Unavailable("a test case"));
    }
    let mut created = new.iter().map(|case| case.id);
    let id =
        |case: &ReportedTestCase| known.get(&case.identifier).copied().or_else(|| created.next());
    let cases: Vec<TestCaseId> = reported.iter().filter_map(id).collect();
    let is_new: HashSet<TestCaseId> = new.iter().map(|case| case.id).collect();
    let changed: Vec<_> = reported
        .iter()
        .zip(&cases)
        .filter(|(_, id)| !is_new.contains(id))
        .filter_map(|(case, id)| Some(Classified::new(*id, case.classification.as_ref()?)))
        .filter(|one| !classified.contains(&(one.case, one.digest)))
        .collect();
    classification::update(tx, customer, &changed).await?;

    let known: Vec<TestCaseId> = known.into_values().collect();
    let chosen = store::choose(tx, customer, &known).await?;
    store::freeze(tx, customer, &chosen).await?;
    let mut executable: HashMap<_, _> = chosen.into_iter().map(|one| (one.case, one)).collect();
    let is_unplanned = |case: &&TestCaseId| !executable.contains_key(*case);
    mark_ready(tx, customer, &known.iter().filter(is_unplanned).copied().collect::<Vec<_>>())
        .await?;
    let unplanned: Vec<TestCaseId> = cases.iter().filter(is_unplanned).copied().collect();
    let planned = plan(tx, customer, &known.into_iter().collect(), &unplanned).await?;

    let cases_created: Vec<_> =
        new.iter().map(|case| EventSource::TestCase(project, case.id)).collect();
    let plans_created: Vec<_> = planned
        .iter()
        .map(|one| EventSource::TestPlan(Some(project), one.case, one.plan))
        .collect();
    for created in [cases_created, plans_created] {
        let events = EventSource::events(&created, Action::Created, customer, project);
        publish_all(tx, events).await?;
    }
    if test_set::members::include(tx, customer, set, &cases).await? > 0 {
        test_set::members_changed(tx, customer, project, set).await?;
    }
    executable.extend(planned.into_iter().map(|one| (one.case, one)));
    Ok((cases.iter().filter_map(|case| executable.remove(case)).collect(), aliases))
}

/// Adds the test cases that have one of the unknown identifiers as an alias, and returns these. A case
/// that is reported under several identifiers is only known by the first one: the others are other
/// tests.
async fn resolve_aliases(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    project: ProjectId,
    reported: &[ReportedTestCase],
    known: &mut HashMap<String, TestCaseId>,
) -> Result<Aliases, Fault> {
    let identifiers = reported.iter().map(|case| case.identifier.as_str());
    let unknown: Vec<_> = identifiers.filter(|one| !known.contains_key(*one)).collect();
    let mut aliases = Aliases::new();
    if unknown.is_empty() {
        return Ok(aliases);
    }
    let mut taken: HashSet<TestCaseId> = known.values().copied().collect();
    for (alias, id) in aliases::lock(tx, customer, project, &unknown).await? {
        if taken.insert(id) {
            known.insert(alias.clone(), id);
            aliases.insert(id, alias);
        }
    }
    Ok(aliases)
}

/// Adds the test cases that have the identifier of an unknown one by an earlier version of the rule, and
/// makes its new identifier an alias, so that their histories continue. Several tests that shared an
/// identifier become test cases of their own.
async fn continue_former(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    project: ProjectId,
    reported: &[ReportedTestCase],
    known: &mut HashMap<String, TestCaseId>,
) -> Result<Aliases, Fault> {
    let mut successors = HashMap::<&str, Vec<&str>>::new();
    for case in reported {
        if let Some(former) = &case.former_identifier {
            successors.entry(former).or_default().push(&case.identifier);
        }
    }
    successors.retain(|_, cases| cases.len() == 1 && !known.contains_key(cases[0]));
    if successors.is_empty() {
        return Ok(Aliases::new());
    }
    let formers: Vec<&str> = successors.keys().copied().collect();
    let taken: HashSet<TestCaseId> = known.values().copied().collect();
    let found = lock_identifiers(tx, customer, project, &formers).await?;
    let renamed: Aliases = found
        .into_iter()
        .filter(|former| !taken.contains(&former.id))
        .filter_map(|former| {
            let successor = successors.get(former.identifier.as_str())?[0];
            Some((former.id, successor.to_owned()))
        })
        .collect();
    aliases::add(tx, customer, project, &renamed).await?;
    known.extend(renamed.iter().map(|(id, identifier)| (identifier.clone(), *id)));
    Ok(renamed)
}

/// An active test case.
#[derive(FromRow)]
struct LiveCase {
    identifier: String,
    id: TestCaseId,
    classification_digest: Option<i64>,
}

/// Locks the active test cases of reported ones.
async fn lock(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    project: ProjectId,
    reported: &[ReportedTestCase],
) -> Result<Vec<LiveCase>, Fault> {
    let identifiers: Vec<_> = reported.iter().map(|case| case.identifier.as_str()).collect();
    lock_identifiers(tx, customer, project, &identifiers).await
}

/// Locks the active test cases with these identifiers, in the order of their ids, so that transactions
/// do not deadlock. The statement is not prepared, for the reason given at that of imports.
async fn lock_identifiers(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    project: ProjectId,
    identifiers: &[&str],
) -> Result<Vec<LiveCase>, Fault> {
    let live = sqlx::query_as(
        "select identifier, id, classification_digest from test_case
         where customer_id = $1 and project_id = $2 and identifier = any($3) and live
         order by id
         for no key update",
    );
    let live = live.bind(customer).bind(project).bind(identifiers).persistent(false);
    Ok(live.fetch_all(&mut **tx).await?)
}

fn new_test_case(case: &ReportedTestCase) -> NewTestCase<'_> {
    let id = TestCaseId::new();
    let classification = case.classification.as_ref();
    NewTestCase {
        id,
        identifier: &case.identifier,
        name: &case.name,
        description: "",
        classified: classification.map(|one| Classified::new(id, one)),
    }
}

/// Adds a plan that is ready, and frozen since it is executed at once, to locked test cases that have
/// none. Those that are not `known` are new. Returns the new plans.
async fn plan(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    known: &HashSet<TestCaseId>,
    cases: &[TestCaseId],
) -> Result<Vec<ExecutableCase>, Fault> {
    let planned = sqlx::query_as(
        "insert into test_plan (customer_id, test_case_id, id, revision, status, test_type,
             instances, minimum_duration_in_min, frozen_at)
         select $1, test_case_id, id,
             case when is_known then (
                 select coalesce(max(revision), 0) + 1 from test_plan
                 where customer_id = $1 and test_case_id = unplanned.test_case_id
             ) else 1 end,
             'ReadyForExecution', 'Default', 1, 0, now()
         from unnest($2::uuid[], $3::uuid[], $5::bool[])
             as unplanned (test_case_id, id, is_known)
         returning test_case_id, id, $4::bigint as size, false as has_rules",
    );
    let planned = planned
        .bind(customer)
        .bind(cases)
        .bind(cases.iter().map(|_| TestPlanId::new()).collect::<Vec<_>>())
        .bind(store::CASE_SIZE)
        .bind(cases.iter().map(|case| known.contains(case)).collect::<Vec<_>>());
    Ok(planned.fetch_all(&mut **tx).await?)
}

/// Marks locked test cases whose latest plan is ready.
async fn mark_ready(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    cases: &[TestCaseId],
) -> Result<(), Fault> {
    let ready = sqlx::query(
        "update test_case set last_plan_status = 'ReadyForExecution'
         where customer_id = $1 and id = any($2)
           and last_plan_status is distinct from 'ReadyForExecution'",
    );
    ready.bind(customer).bind(cases).execute(&mut **tx).await?;
    Ok(())
}
