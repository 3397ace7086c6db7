//! Assigns reported results to the test reports of an execution.

use std::collections::{HashMap, HashSet};

use assay_ledger::{
    progress::{
        instance::Slot,
        merge::{ANNOUNCED, AssignedResult, MOST_INSTANCES},
        report::TestReportState,
    },
    test_report,
};
use assay_proto::{CustomerId, ExecutionId, Fault};
use assay_records::Check;
use sqlx::PgTransaction;
use uuid::Uuid;

use crate::result::rules::{Case, MOST_VIOLATIONS, Reported};

/// Reads the reports of the test cases that results are for.
pub(crate) async fn reports_of(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    execution: ExecutionId,
    results: &[Reported],
) -> Result<Vec<TestReportState>, Fault> {
    let (mut ids, mut identifiers) = (HashSet::new(), HashSet::new());
    for result in results {
        match &result.case {
            Some(Case::Id(id)) => _ = ids.insert(id.0),
            Some(Case::Identifier(identifier)) => _ = identifiers.insert(identifier.as_str()),
            None => {}
        }
    }
    let ids: Vec<Uuid> = ids.into_iter().collect();
    let identifiers: Vec<&str> = identifiers.into_iter().collect();
    test_report::store::of_cases(tx, customer, execution, &ids, &identifiers).await
}

/// Assigns each result to the report of its test case.
pub(crate) fn to_reports(
    results: Vec<Reported>,
    reports: &[TestReportState],
    is_open: bool,
) -> Result<Vec<AssignedResult>, Fault> {
    let (mut by_id, mut by_identifier) = (HashMap::new(), HashMap::new());
    for (index, report) in reports.iter().enumerate() {
        by_id.insert(report.published.test_case_id.as_str(), index);
        by_identifier.insert(report.test_case_identifier(), index);
    }
    assign(results, reports, is_open, |result| match &result.case {
        Some(Case::Identifier(identifier)) => {
            ("Identifier", by_identifier.get(identifier.as_str()).copied())
        }
        Some(Case::Id(id)) => ("TestCaseId", by_id.get(id.to_string().as_str()).copied()),
        None => ("TestCaseId", None),
    })
}

/// Assigns all results to one report.
pub(crate) fn to_report(
    results: Vec<Reported>,
    report: &TestReportState,
) -> Result<Vec<AssignedResult>, Fault> {
    assign(results, std::slice::from_ref(report), false, |_| ("", Some(0)))
}

/// Assigns each result to the report whose index `find` returns, together with the field that
/// decides.
fn assign(
    results: Vec<Reported>,
    reports: &[TestReportState],
    is_open: bool,
    find: impl Fn(&Reported) -> (&'static str, Option<usize>),
) -> Result<Vec<AssignedResult>, Fault> {
    let mut check = Check::with_limit(MOST_VIOLATIONS);
    let mut assigned = Vec::with_capacity(results.len());
    for (index, result) in results.into_iter().enumerate() {
        let (field, report) = find(&result);
        let Some(report) = report else {
            let problem = "must be a test case of this execution";
            check.within(index, |check| check.refuse(field, problem));
            continue;
        };
        let most = if is_open { MOST_INSTANCES } else { reports[report].requested_instances_count };
        let Reported { slot, classification, attempt, .. } = result;
        check.within(index, |check| {
            if attempt.number == ANNOUNCED && !is_open {
                check.refuse("Result", "must be that of an executed test");
            }
            let slot = if is_open { slot } else { numbered(slot, check) };
            if matches!(slot, Slot::Number(number) if number > most) {
                check.refuse("InstanceNr", format!("must be 1 to {most}"));
            }
            assigned.push(AssignedResult { report, slot, classification, attempt });
        });
    }
    check.done()?;
    Ok(assigned)
}

/// Returns the number of an instance in an execution that is not open: 1 unless the client sends it.
fn numbered(slot: Slot, check: &mut Check) -> Slot {
    if !slot.reporter().is_empty() {
        check.refuse("Reporter", "must be absent unless the execution is open");
    }
    if !slot.variant().is_empty() {
        check.refuse("Variant", "must be absent unless the execution is open");
    }
    match slot {
        Slot::Number(_) => slot,
        Slot::Named { .. } => Slot::Number(1),
    }
}
