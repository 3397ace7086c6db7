//! Adds results to an execution that runs, whoever runs it.

use std::collections::{HashMap, HashSet};

use assay_proto::{
    CustomerId, ExecutionId, Fault, InstanceId, ProjectId, Violation, execution::ReportedResults,
};
use sqlx::PgTransaction;
use uuid::Uuid;

use crate::{
    execution::{self, Run, rules, settle},
    instance::{self, NewInstance},
    result::rules::{Case, MOST_VIOLATIONS, Reported},
    test_report::{self, Progress},
};

/// Adds results to an External execution, all or none. Those that are there already change nothing,
/// and so may be sent even to an execution that has ended.
pub(crate) async fn append(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    project: ProjectId,
    execution: ExecutionId,
    results: Vec<Reported>,
) -> Result<ReportedResults, Fault> {
    let sent = results.len();
    let mut run = execution::store::lock(tx, customer, project, execution).await?;
    rules::refuse_dispatched(&run)?;
    let mut reports = find_reports(tx, customer, execution, &results).await?;
    let instances = place(results, &reports)?;
    let accepted = record(tx, customer, &mut run, &mut reports, instances).await?;
    let count = |number: usize| i32::try_from(number).unwrap_or(i32::MAX);
    Ok(ReportedResults { accepted: count(accepted), duplicates: count(sent - accepted) })
}

/// Adds instances to these reports of a locked execution, all or none. Those that are there already
/// change nothing. Says how many are new.
pub(crate) async fn record(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    run: &mut Run,
    reports: &mut [Progress],
    mut instances: Vec<NewInstance>,
) -> Result<usize, Fault> {
    let added = instance::store::insert(tx, customer, reports, &instances).await?;
    instances.retain(|instance| added.contains(&instance.id));
    if instances.is_empty() {
        return Ok(0);
    }
    if run.has_ended() {
        return Err(rules::ended("the execution has ended; it takes no new results"));
    }
    instance::store::insert_details(tx, customer, reports, &instances).await?;
    let finished = add(run, reports, &instances)?;
    test_report::store::save(tx, customer, reports).await?;
    let finished = finished.into_iter().map(|report| reports[report].state.clone()).collect();
    settle(tx, customer, run, finished).await?;
    Ok(instances.len())
}

async fn find_reports(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    execution: ExecutionId,
    results: &[Reported],
) -> Result<Vec<Progress>, Fault> {
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

/// Finds the report of each result by its case.
fn place(results: Vec<Reported>, reports: &[Progress]) -> Result<Vec<NewInstance>, Fault> {
    let (mut by_id, mut by_identifier) = (HashMap::new(), HashMap::new());
    for (place, report) in reports.iter().enumerate() {
        by_id.insert(report.state.test_case_id.as_str(), place);
        by_identifier.insert(report.test_case_identifier.as_str(), place);
    }
    place_by(results, reports, |result| match &result.case {
        Some(Case::Identifier(identifier)) => {
            ("Identifier", by_identifier.get(identifier.as_str()).copied())
        }
        Some(Case::Id(id)) => ("TestCaseId", by_id.get(id.to_string().as_str()).copied()),
        None => ("TestCaseId", None),
    })
}

/// Puts results that are all of one report into it.
pub(crate) fn place_in(
    results: Vec<Reported>,
    report: &Progress,
) -> Result<Vec<NewInstance>, Fault> {
    place_by(results, std::slice::from_ref(report), |_| ("", Some(0)))
}

/// Puts each result into the report that `find` says, with the field that it says so by. Of several
/// for the same instance, the first one counts.
fn place_by(
    results: Vec<Reported>,
    reports: &[Progress],
    find: impl Fn(&Reported) -> (&'static str, Option<usize>),
) -> Result<Vec<NewInstance>, Fault> {
    let mut violations = Vec::new();
    let mut refuse = |index: usize, field: &str, problem: String| {
        if violations.len() < MOST_VIOLATIONS {
            violations.push(Violation { field: format!("{index}/{field}"), problem });
        }
    };
    let (mut instances, mut seen) = (Vec::with_capacity(results.len()), HashSet::new());
    for (index, result) in results.into_iter().enumerate() {
        let (field, report) = find(&result);
        let Some(report) = report else {
            refuse(index, field, "is of no test case in this execution".to_owned());
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
    if violations.is_empty() { Ok(instances) } else { Err(Fault::Invalid(violations)) }
}

/// Adds up what the instances mean for their reports and the execution. Says which reports, by
/// their places, have ended by them; reports without new instances are not touched.
fn add(
    run: &mut Run,
    reports: &mut [Progress],
    instances: &[NewInstance],
) -> Result<Vec<usize>, Fault> {
    let mut finished = Vec::new();
    for instance in instances {
        let report = &mut reports[instance.report];
        report.add(&instance.outcome)?;
        run.add(&instance.outcome);
        if !report.is_pending() {
            run.end_report(report.result());
            finished.push(instance.report);
        }
    }
    Ok(finished)
}
