//! The events of executions and their test reports.

use std::iter;

use assay_events::{Event, EventType, ExecutionAction, ReportsAction, publish_all};
use assay_proto::{
    CustomerId, ExecutionId, Fault,
    events::{ExecutionChanged, ReportState},
};
use sqlx::PgTransaction;

use crate::{incident, progress::execution::ExecutionState, test_report, verdict};

/// Maximum number of failed test cases in the event of an execution's end, as its contract says.
const FAILED_IN_EVENT: i64 = 10;

/// Publishes the reports that have ended, and then `action` of their locked execution: its end comes after all
/// of its reports. The end has the verdict with it, unless nobody is notified of it.
pub async fn announce(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    state: &ExecutionState,
    action: ExecutionAction,
    finished: &[ReportState],
) -> Result<(), Fault> {
    let mut changed = state.event(action);
    let id = ExecutionId::from_record(&state.execution.id)?;
    let statistic = &state.statistic;
    let has_failed = statistic.test_cases_failed + statistic.test_cases_with_error > 0;
    if state.has_ended() && has_failed {
        changed.failed_test_cases =
            test_report::store::first_failed(tx, customer, id, FAILED_IN_EVENT).await?;
    }
    if state.has_ended() && !state.is_past() {
        let judged = verdict::judge(tx, customer, state).await?;
        changed.set_verdict(judged.state);
        changed.trend = judged.trend.map(Into::into);
        (changed.owners, changed.owner_trends) = (judged.owners, judged.owner_trends);
        (changed.changes, changed.rules) = (Some(judged.changes), judged.rules);
    }
    if action == ExecutionAction::Completed {
        incident::request_search(tx, customer, state).await?;
    }
    let actions = (action, ReportsAction::Finished);
    publish_all(tx, events(customer, state, &changed, actions, finished)).await
}

/// Returns the events of reports, followed by that of their execution.
pub fn events<'e>(
    customer: CustomerId,
    state: &'e ExecutionState,
    changed: &ExecutionChanged,
    (action, of_reports): (ExecutionAction, ReportsAction),
    reports: &'e [ReportState],
) -> impl Iterator<Item = Result<Event, Fault>> + Send + use<'e> {
    let record = &state.execution.id;
    let changed = Event::new(customer, record, EventType::Execution(action), changed);
    let of_reports = state
        .reports_changed(of_reports, reports)
        .map(move |changed| Event::new(customer, record, EventType::Reports(of_reports), &changed));
    of_reports.chain(iter::once(changed))
}
