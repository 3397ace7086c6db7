//! Taking a review of several test reports back, with the known failures that it has made.

use assay_auth::Caller;
use assay_events::{RecordKind, publish_all};
use assay_ledger::{event, execution::store::lock, known_failure, mute};
use assay_proto::{
    CustomerId, EnumColumn, ExecutionId, Fault, Permission, ProjectId, ReportStatus, ReviewId,
    TestReportId, events::ReportState,
};
use sqlx::{AssertSqlSafe, FromRow, PgTransaction};

use super::{publish_reviewed, seen::reviewed_since, store};
use crate::test_report::rules::require_permission;

/// A report that a review was about, and its status before it.
#[derive(FromRow)]
struct Reviewed {
    id: TestReportId,
    #[sqlx(try_from = "EnumColumn<ReportStatus>")]
    status: i32,
    #[sqlx(try_from = "EnumColumn<ReportStatus>")]
    status_before: i32,
    /// Whether it was muted before the review.
    was_muted: bool,
    /// Whether it has changed since, by results or a repair.
    is_changed: bool,
}

/// Takes a review of reports of an execution back. Reports that have changed since stay as they are; if all
/// have, the request fails.
pub(in crate::test_report) async fn undo(
    tx: &mut PgTransaction<'_>,
    caller: &Caller,
    (project, execution): (Option<ProjectId>, ExecutionId),
    id: ReviewId,
) -> Result<(), Fault> {
    let customer = caller.customer;
    let state = lock(tx, customer, project, execution).await?;
    let of_review = reviewed(tx, customer, execution, id).await?;
    if of_review.is_empty() {
        return Err(Fault::NotFound("review"));
    }
    for report in &of_review {
        for status in [report.status, report.status_before] {
            require_permission(caller, ReportStatus::try_from(status).unwrap_or_default())?;
        }
    }
    let (changed, kept): (Vec<_>, Vec<_>) = of_review.iter().partition(|one| one.is_changed);
    if kept.is_empty() {
        let ids: Vec<_> = changed.iter().map(|report| report.id).collect();
        let judgements = store::judgements(tx, customer, &ids[..ids.len().min(3)]).await?;
        return Err(reviewed_since(&judgements, ids.len()));
    }
    let project = ProjectId::from_record(&state.execution.project_id)?;
    let known = known_failure::undo::undo(tx, customer, project, id).await?;
    if !known.is_empty() && !caller.may(Permission::Accept) {
        return Err(Fault::Forbidden("this needs the permission Accept".to_owned()));
    }
    // The review may have marked failures of a report whose other failures it has not muted.
    let muted = kept.iter().filter(|report| !report.was_muted);
    let muted: Vec<String> = muted.map(|report| report.id.to_string()).collect();
    mute::unmute(tx, customer, &muted.iter().collect::<Vec<_>>()).await?;
    let ids: Vec<_> = kept.iter().map(|report| report.id).collect();
    let restored = restore(tx, customer, &ids).await?;
    let events = known.iter().map(|(id, action)| {
        event::record(customer, project, (RecordKind::KnownFailure, *id), *action)
    });
    publish_all(tx, events).await?;
    publish_reviewed(tx, customer, &state, &restored).await
}

/// Returns the reports of a locked execution whose last review is this one.
async fn reviewed(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    execution: ExecutionId,
    id: ReviewId,
) -> Result<Vec<Reviewed>, Fault> {
    let reviewed = sqlx::query_as(
        "select id, status, before_review ->> 'Status' as status_before,
                (before_review ->> 'IsMuted')::bool as was_muted,
                revision <> (before_review ->> 'Revision')::bigint as is_changed
         from test_report
         where customer_id = $1 and execution_id = $2 and review_id = $3
         order by id",
    );
    Ok(reviewed.bind(customer).bind(execution).bind(id).fetch_all(&mut **tx).await?)
}

/// Restores reports as they were before their review. Returns their states.
async fn restore(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    reports: &[TestReportId],
) -> Result<Vec<ReportState>, Fault> {
    let columns = ReportState::COLUMNS;
    let restore = sqlx::query_as(AssertSqlSafe(format!(
        "update test_report
         set status = before_review ->> 'Status', judgement = before_review ->> 'Judgement',
             comment = before_review ->> 'Comment', ticket = before_review ->> 'Ticket',
             is_muted = (before_review ->> 'IsMuted')::bool,
             reviewed_by_id = (before_review ->> 'ReviewedById')::uuid,
             reviewed_by = before_review ->> 'ReviewedBy',
             review_time = (before_review ->> 'ReviewTime')::timestamptz, review_id = null,
             before_review = null, revision = revision + 1
         where customer_id = $1 and id = any($2)
         returning {columns}"
    )));
    Ok(restore.bind(customer).bind(reports).fetch_all(&mut **tx).await?)
}
