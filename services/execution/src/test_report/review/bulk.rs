//! Reviews of several test reports of an execution, all or none.

use std::collections::HashSet;

use assay_auth::Caller;
use assay_events::{RecordKind, publish_all};
use assay_ledger::{
    event, execution::store::lock, failure::judged, known_failure, mute,
    progress::execution::ExecutionState,
};
use assay_proto::{
    CustomerId, ExecutionId, Fault, KnownFailureId, ProjectId, ReviewId, TestReportId,
    execution::ReviewedTestReports,
};
use assay_records::Action;
use sqlx::PgTransaction;

use super::{
    publish_reviewed,
    seen::{Locked, NAMED, reviewed_since},
    selection::{Review, Selection},
    store,
};

/// Stores and publishes a review of reports of an execution.
pub(super) async fn review(
    tx: &mut PgTransaction<'_>,
    caller: &Caller,
    (project, id): (Option<ProjectId>, ExecutionId),
    review: &Review,
) -> Result<ReviewedTestReports, Fault> {
    let customer = caller.customer;
    let state = lock(tx, customer, project, id).await?;
    let locked = store::selected(tx, customer, id, &review.selection).await?;
    check_seen(tx, customer, id, review, &locked).await?;
    let reports: Vec<_> = locked.into_iter().map(|report| report.id).collect();
    if let Selection::Listed(sought, _) = &review.selection {
        check_finished(sought, &reports)?;
    }
    let review_id = store::next_id(tx).await?;
    let known_failures = make_known(tx, caller, &state, &reports, (review_id, review)).await?;
    let muted = if review.mute.is_some() {
        let ids: Vec<String> = reports.iter().map(ToString::to_string).collect();
        mute::muted(tx, customer, &state, &ids).await?.into_keys().collect()
    } else {
        Vec::new()
    };
    let reviewed = store::save_selected(tx, caller, &reports, (review_id, review), &muted).await?;
    publish_reviewed(tx, customer, &state, &reviewed).await?;
    let count = |count: usize| i32::try_from(count).unwrap_or(i32::MAX);
    let known_failures = count(known_failures);
    let review_id = review_id.to_string();
    Ok(ReviewedTestReports { reviewed: count(reviewed.len()), known_failures, review_id })
}

/// Fails if selected reports and causes have been judged since the reviewer has seen them.
async fn check_seen(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    execution: ExecutionId,
    review: &Review,
    locked: &[Locked],
) -> Result<(), Fault> {
    let (changed, count) = review.seen.changed(locked);
    if count > 0 {
        return Err(reviewed_since(&store::judgements(tx, customer, &changed).await?, count));
    }
    let seen = review.seen.causes(review.selection.causes());
    let changed = judged::changed(tx, customer, execution, &seen).await?;
    if changed.is_empty() {
        return Ok(());
    }
    let judged = judged::reports(tx, customer, execution, &changed).await?;
    let named = &judged[..judged.len().min(NAMED)];
    Err(reviewed_since(&store::judgements(tx, customer, named).await?, judged.len()))
}

/// Makes the failures of locked reports known, if the review says so. Returns their number.
async fn make_known(
    tx: &mut PgTransaction<'_>,
    caller: &Caller,
    state: &ExecutionState,
    reports: &[TestReportId],
    (review_id, review): (ReviewId, &Review),
) -> Result<usize, Fault> {
    let Some(mute) = review.mute else { return Ok(0) };
    let id = ExecutionId::from_record(&state.execution.id)?;
    let project = ProjectId::from_record(&state.execution.project_id)?;
    let known = store::mute(tx, caller, id, reports, (review_id, review), mute).await?;
    known_failure::store::check_number(tx, caller.customer, project).await?;
    let event = |(id, is_new): &(KnownFailureId, bool)| {
        let action = if *is_new { Action::Created } else { Action::Changed };
        event::record(caller.customer, project, (RecordKind::KnownFailure, *id), action)
    };
    publish_all(tx, known.iter().map(event)).await?;
    Ok(known.len())
}

/// Fails if some of the reports that are sought by their ids cannot be reviewed.
fn check_finished(sought: &[TestReportId], found: &[TestReportId]) -> Result<(), Fault> {
    let found: HashSet<_> = found.iter().collect();
    let missing = sought.iter().filter(|id| !found.contains(id)).take(5);
    let ids = missing.map(ToString::to_string).collect::<Vec<_>>();
    if ids.is_empty() {
        return Ok(());
    }
    let ids = ids.join(", ");
    let problem = format!("must be finished reports of the execution, which these are not: {ids}");
    Err(Fault::invalid("Reports", problem))
}
