//! Test cases that results name and an execution does not have yet.

use std::collections::{HashMap, HashSet};

use assay_auth::Caller;
use assay_ledger::{
    progress::{execution::ExecutionState, instance::Slot, report::TestReportState},
    test_report,
};
use assay_proto::{
    CustomerId, ExecutionId, Fault, TestCaseId,
    catalog::{ReportedTestCase, Snapshot, SnapshotTarget, SnapshotTestCase},
};
use assay_rpc::body::{Intake, Memory};
use sqlx::{PgPool, PgTransaction};
use tonic::Status;

use super::rules::{Case, Reported};
use crate::catalog::Catalog;

/// Returns the test cases that results name, each once and in their order. The first result of each that
/// has a classification decides.
pub(crate) fn named(results: &[Reported]) -> Vec<ReportedTestCase> {
    let (mut named, mut places) = (Vec::<ReportedTestCase>::new(), HashMap::new());
    for result in results {
        let Some(Case::Identifier(identifier)) = &result.case else { continue };
        let place = *places.entry(identifier.as_str()).or_insert_with(|| {
            named.push(ReportedTestCase {
                identifier: identifier.clone(),
                name: result.name.as_ref().unwrap_or(identifier).clone(),
                former_identifier: result.former.clone(),
                classification: None,
            });
            named.len() - 1
        });
        if named[place].classification.is_none() {
            named[place].classification = result.classification.as_deref().cloned();
        }
    }
    named
}

/// Has the catalog create missing test cases and add them to the test set. Returns the copy of the
/// cases, in the same order.
pub(crate) async fn adopt(
    catalog: &Catalog,
    caller: &Caller,
    target: SnapshotTarget,
    cases: Vec<ReportedTestCase>,
    intake: &Intake,
) -> Result<(Snapshot, Memory), Status> {
    let identifiers: Vec<_> = cases.iter().map(|case| case.identifier.clone()).collect();
    let (snapshot, memory) = catalog.adopt(caller, target, cases, intake).await?;
    let copied = snapshot.test_cases.iter().map(|copy| &copy.identifier);
    if copied.eq(&identifiers) {
        return Ok((snapshot, memory));
    }
    Err(Fault::internal("the catalog copied other test cases than requested").into())
}

/// Has the catalog adopt the test cases that an open execution does not have yet.
pub(crate) async fn adopt_unknown(
    db: &PgPool,
    catalog: &Catalog,
    caller: &Caller,
    state: &ExecutionState,
    results: &[Reported],
    intake: &Intake,
) -> Result<Option<(Snapshot, Memory)>, Status> {
    let mut cases = named(results);
    let id = ExecutionId::from_record(&state.execution.id)?;
    let identifiers: Vec<_> = cases.iter().map(|case| case.identifier.as_str()).collect();
    let known = test_report::store::known(db, caller.customer, id, &identifiers).await?;
    cases.retain(|case| !known.contains(&case.identifier));
    if cases.is_empty() {
        return Ok(None);
    }
    let execution = &state.execution;
    let target = SnapshotTarget {
        project_id: execution.project_id.clone(),
        test_set_id: execution.test_set_id.clone(),
        subject_id: execution.software_version_id.clone(),
        environment_id: execution.environment_id.clone(),
    };
    adopt(catalog, caller, target, cases, intake).await.map(Some)
}

/// Inserts reports of adopted test cases that a locked execution still does not have. Results under
/// another identifier of a test case that has a report are assigned to that report.
pub(crate) async fn insert_reports(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    state: &mut ExecutionState,
    adopted: Snapshot,
    results: &mut [Reported],
) -> Result<(), Fault> {
    let id = ExecutionId::from_record(&state.execution.id)?;
    let mut cases = adopted.test_cases;
    let identifiers: Vec<_> = cases.iter().map(|case| case.identifier.as_str()).collect();
    let known = test_report::store::known(&mut **tx, customer, id, &identifiers).await?;
    cases.retain(|case| !known.contains(&case.identifier));
    let ids: Vec<_> = cases.iter().map(|case| case.id.as_str()).collect();
    let identifiers = test_report::store::identifiers(tx, customer, id, &ids).await?;
    if !identifiers.is_empty() {
        assign_aliases(results, &cases, &identifiers)?;
        cases.retain(|case| !identifiers.contains_key(&case.id));
    }
    if cases.is_empty() {
        return Ok(());
    }
    let numbers = test_report::store::count(tx, customer, &cases).await?;
    let ids = state.ids_of_reports(state.statistic.test_cases_total);
    let report = |((id, case), number)| TestReportState::new(id, case, number, 0);
    let reports: Vec<_> = ids.zip(&cases).zip(numbers).map(report).collect();
    test_report::store::insert(tx, customer, id, &cases, &reports).await?;
    state.expect(reports.len());
    Ok(())
}

/// Assigns results under other identifiers of test cases, of which `identifiers` has those of their
/// reports, by ids. If the results name a test case by both, they are of several instances.
fn assign_aliases(
    results: &mut [Reported],
    cases: &[SnapshotTestCase],
    identifiers: &HashMap<String, String>,
) -> Result<(), Fault> {
    let named: HashSet<String> =
        self::named(results).into_iter().map(|case| case.identifier).collect();
    let mut aliases = HashMap::new();
    for case in cases {
        if let Some(identifier) = identifiers.get(&case.id) {
            let id = TestCaseId::from_record(&case.id)?;
            aliases.insert(case.identifier.as_str(), (id, named.contains(identifier)));
        }
    }
    for result in results {
        let Some(Case::Identifier(alias)) = &result.case else { continue };
        let Some((id, is_named_twice)) = aliases.get(alias.as_str()) else { continue };
        if let (true, Slot::Named { variant, .. }) = (is_named_twice, &mut result.slot) {
            *variant =
                if variant.is_empty() { alias.clone() } else { format!("{alias}, {variant}") };
        }
        result.case = Some(Case::Id(*id));
    }
    Ok(())
}
