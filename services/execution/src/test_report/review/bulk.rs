//! Reviews of several test reports of an execution, all or none.

use assay_auth::Caller;
use assay_events::{Event, EventType, ReportsAction, publish_all};
use assay_proto::{ExecutionId, Fault, ProjectId, TestReportId, execution::ReviewedTestReports};
use sqlx::PgTransaction;

use super::{
    selection::{Review, Selection},
    store,
};
use crate::{execution::store::find, known_failure};

/// Stores and publishes a review of reports of an execution.
pub(super) async fn review(
    tx: &mut PgTransaction<'_>,
    caller: &Caller,
    (project, id): (Option<ProjectId>, ExecutionId),
    review: &Review,
) -> Result<ReviewedTestReports, Fault> {
    let customer = caller.customer;
    let state = find(&mut **tx, customer, project, id).await?;
    let reports = store::lock_selected(tx, customer, id, &review.selection).await?;
    if let Selection::Reports(sought) = &review.selection
        && reports.len() < sought.len()
    {
        return Err(unfinished(sought, &reports));
    }
    let known_failures = match review.mute {
        Some(mute) => {
            let muted = store::mute(tx, caller, id, &reports, review, mute).await?;
            let project = ProjectId::from_record(&state.execution.project_id)?;
            known_failure::store::check_number(tx, customer, project).await?;
            muted
        }
        None => 0,
    };
    let reviewed = store::save_selected(tx, customer, &reports, review).await?;
    let action = ReportsAction::Reviewed;
    let event_type = EventType::Reports(action);
    let events: Result<Vec<_>, _> = state
        .reports_changed(action, &reviewed)
        .iter()
        .map(|changed| Event::new(customer, id, event_type, changed))
        .collect();
    publish_all(tx, &events?).await?;
    let count = |count: usize| i32::try_from(count).unwrap_or(i32::MAX);
    let known_failures = i32::try_from(known_failures).unwrap_or(i32::MAX);
    Ok(ReviewedTestReports { reviewed: count(reviewed.len()), known_failures })
}

/// The error that some of the reports cannot be reviewed.
fn unfinished(sought: &[TestReportId], found: &[TestReportId]) -> Fault {
    let missing: Vec<_> = sought.iter().filter(|id| !found.contains(id)).take(5).collect();
    let ids = missing.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let problem = format!("must be finished reports of the execution, which these are not: {ids}");
    Fault::invalid("Reports", problem)
}
