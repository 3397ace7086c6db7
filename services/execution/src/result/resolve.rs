//! Assigns reported results to the test reports of an execution.

use std::collections::{HashMap, HashSet};

use assay_proto::{CustomerId, ExecutionId, Fault, InstanceId};
use assay_records::Check;
use sqlx::PgTransaction;
use uuid::Uuid;

use crate::{
    progress::{instance::NewInstance, report::TestReportState},
    result::rules::{Case, MOST_VIOLATIONS, Reported},
    test_report,
};

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
pub(crate) fn into_reports(
    results: Vec<Reported>,
    reports: &[TestReportState],
) -> Result<Vec<NewInstance>, Fault> {
    let (mut by_id, mut by_identifier) = (HashMap::new(), HashMap::new());
    for (index, report) in reports.iter().enumerate() {
        by_id.insert(report.published.test_case_id.as_str(), index);
        by_identifier.insert(report.test_case_identifier.as_str(), index);
    }
    assign(results, reports, |result| match &result.case {
        Some(Case::Identifier(identifier)) => {
            ("Identifier", by_identifier.get(identifier.as_str()).copied())
        }
        Some(Case::Id(id)) => ("TestCaseId", by_id.get(id.to_string().as_str()).copied()),
        None => ("TestCaseId", None),
    })
}

/// Assigns all results to one report.
pub(crate) fn into_report(
    results: Vec<Reported>,
    report: &TestReportState,
) -> Result<Vec<NewInstance>, Fault> {
    assign(results, std::slice::from_ref(report), |_| ("", Some(0)))
}

/// Assigns each result to the report whose index `find` returns, together with the field that
/// decides. Of several results for the same instance, the first one counts.
fn assign(
    results: Vec<Reported>,
    reports: &[TestReportState],
    find: impl Fn(&Reported) -> (&'static str, Option<usize>),
) -> Result<Vec<NewInstance>, Fault> {
    let mut check = Check::with_limit(MOST_VIOLATIONS);
    let mut refuse = |index: usize, field: &str, problem: String| {
        check.within(index, |check| check.refuse(field, problem));
    };
    let (mut instances, mut seen) = (Vec::with_capacity(results.len()), HashSet::new());
    for (index, result) in results.into_iter().enumerate() {
        let (field, report) = find(&result);
        let Some(report) = report else {
            refuse(index, field, "must be a test case of this execution".to_owned());
            continue;
        };
        let requested = reports[report].requested_instances_count;
        if result.outcome.instance_nr > requested {
            refuse(index, "InstanceNr", format!("must be 1 to {requested}"));
        } else if seen.insert((report, result.outcome.instance_nr)) {
            let (outcome, detail) = (result.outcome, result.detail);
            instances.push(NewInstance { id: InstanceId::new(), report, outcome, detail });
        }
    }
    check.done()?;
    Ok(instances)
}
