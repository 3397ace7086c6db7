//! Tells other services what has become of an execution.

mod store;

use assay_events::{Event, publish_all};
use assay_proto::{
    CustomerId, ExecutionId, Fault,
    events::{ExecutionChanged, ReportState, ReportsChanged},
};
use sqlx::PgTransaction;

use crate::execution::Run;

/// How many reports one event tells of: JetStream takes a mebibyte.
const REPORTS_IN_EVENT: usize = 500;

/// How many test cases the event of an execution's end names that failed; its contract says so.
const FAILED_IN_EVENT: i64 = 10;

/// Announces `action` of an execution, whose row is locked, and the reports that ended by it.
pub(crate) async fn announce(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    run: &Run,
    action: &str,
    finished: &[ReportState],
) -> Result<(), Fault> {
    let mut changed = run.changed(action);
    let statistic = &run.statistic;
    if run.has_ended() && statistic.test_cases_failed + statistic.test_cases_with_error > 0 {
        let id = ExecutionId::from_path(&run.execution.id)?;
        changed.failed_test_cases = store::first_failed(tx, customer, id, FAILED_IN_EVENT).await?;
    }
    publish_all(tx, &events(customer, run, &changed, "Finished", finished)?).await
}

/// That an execution has changed so, and that `of_reports` has happened to these reports.
pub(crate) fn events(
    customer: CustomerId,
    run: &Run,
    changed: &ExecutionChanged,
    of_reports: &str,
    reports: &[ReportState],
) -> Result<Vec<Event>, Fault> {
    let record = &run.execution.id;
    let mut events = vec![Event::new(customer, record, "execution", &changed.action, changed)?];
    for changed in reports_changed(run, of_reports, reports) {
        events.push(Event::new(customer, record, "test_report", of_reports, &changed)?);
    }
    Ok(events)
}

/// What others are told of reports, in parts that fit into an event.
pub(crate) fn reports_changed(
    run: &Run,
    action: &str,
    reports: &[ReportState],
) -> Vec<ReportsChanged> {
    let execution = &run.execution;
    let parts = reports.chunks(REPORTS_IN_EVENT).map(|reports| ReportsChanged {
        execution_id: execution.id.clone(),
        project_id: execution.project_id.clone(),
        test_set_id: execution.test_set_id.clone(),
        action: action.to_owned(),
        software_name: execution.software_name.clone(),
        software_identifier: execution.software_version.clone(),
        reports: reports.to_vec(),
    });
    parts.collect()
}
