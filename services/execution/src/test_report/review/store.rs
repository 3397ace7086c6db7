//! Reviews in PostgreSQL. Every statement is bound to one customer.

use assay_auth::Caller;
use assay_ledger::{
    execution::store as executions,
    progress::execution::ExecutionState,
    test_report::{
        path::TestReportPath,
        store::{find, get},
    },
    verdict::store::UNREVIEWED,
};
use assay_proto::{
    CustomerId, ExecutionId, Fault, InputColumns, KnownFailureId, ReviewId, TestReportId,
    events::ReportState,
    execution::{TestReport, TestReportInput},
    name_of,
};
use sqlx::{AssertSqlSafe, PgTransaction};

use super::{
    seen::{Judgement, Locked},
    selection::{Mute, Review, Selection},
};
use crate::test_report::rules::is_review;

#[derive(sqlx::FromRow)]
struct OfExecution {
    execution_id: ExecutionId,
}

/// Locks and reads the execution of a report, and then reads the report: retries of its tests may have
/// changed it.
pub(super) async fn lock(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    path: TestReportPath,
) -> Result<(ExecutionState, TestReport), Fault> {
    let OfExecution { execution_id } = find(&mut **tx, customer, path).await?;
    let execution = executions::lock(tx, customer, path.project, execution_id).await?;
    Ok((execution, get(&mut **tx, customer, path).await?))
}

/// Stores the review of a locked report by a caller.
pub(super) async fn save(
    tx: &mut PgTransaction<'_>,
    caller: &Caller,
    id: TestReportId,
    review: &TestReportInput,
) -> Result<(), Fault> {
    let assignments = TestReportInput::assignments(6);
    let judgement = is_review(review.status()).then(|| name_of(review.status()));
    let update = sqlx::query_as::<_, ()>(AssertSqlSafe(format!(
        "update test_report
         set {assignments}, judgement = coalesce($5, judgement), reviewed_by_id = $3,
             reviewed_by = $4, review_time = now(), revision = revision + 1, review_id = null,
             before_review = null
         where customer_id = $1 and id = $2
         returning id"
    )));
    let update = update.bind(caller.customer).bind(id).bind(caller.user).bind(&*caller.name);
    let update = update.bind(judgement);
    review.bind(update).fetch_one(&mut **tx).await?;
    Ok(())
}

/// Returns the condition that a report `r` has one of the ids `$3`, or one of the causes `$4` and the change `$5`, and
/// is muted or not. Of the causes, it may select only the reports that need a review, by `$7`.
fn listed() -> String {
    format!(
        "(id = any($3) or id = any(array(
             select test_report_id from kept_failure
             where customer_id = $1 and execution_id = $2 and fingerprint = any($4)
         )) and ($5::text is null or change = $5) and ($6::bool is null or is_muted = $6)
            and (not $7::bool or {UNREVIEWED}))"
    )
}

/// Lists the selected reports of a locked execution that have ended without being canceled, with
/// their versions.
pub(super) async fn selected(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    execution: ExecutionId,
    selection: &Selection,
) -> Result<Vec<Locked>, Fault> {
    let condition = match selection {
        Selection::Result(_) => "result = $3".to_owned(),
        Selection::Listed(..) => listed(),
    };
    let reports = sqlx::query_as(AssertSqlSafe(format!(
        "select id, revision from test_report r
         where customer_id = $1 and execution_id = $2
           and status not in ('NotExecuted', 'Running', 'Canceled') and {condition}
         order by id"
    )));
    let reports = reports.bind(customer).bind(execution);
    let reports = match selection {
        Selection::Result(result) => reports.bind(name_of(*result)),
        Selection::Listed(ids, causes) => {
            let reports = reports.bind(ids).bind(causes.bytes()).bind(&causes.change);
            reports.bind(causes.muted).bind(causes.unreviewed)
        }
    };
    Ok(reports.persistent(false).fetch_all(&mut **tx).await?)
}

/// Returns the judgements of locked reports.
pub(super) async fn judgements(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    reports: &[TestReportId],
) -> Result<Vec<Judgement>, Fault> {
    let judgements = sqlx::query_as(
        "select test_case_name, status, ticket, coalesce(comment, '') as comment, reviewed_by
         from test_report
         where customer_id = $1 and id = any($2)
         order by id",
    );
    Ok(judgements.bind(customer).bind(reports).fetch_all(&mut **tx).await?)
}

/// Makes the failures of locked reports known. Their ids begin with the time, as all do. Returns the
/// known failures, and whether each was created.
pub(super) async fn mute(
    tx: &mut PgTransaction<'_>,
    caller: &Caller,
    execution: ExecutionId,
    reports: &[TestReportId],
    (review_id, review): (ReviewId, &Review),
    mute: Mute,
) -> Result<Vec<(KnownFailureId, bool)>, Fault> {
    // Of reports that a cause selects, only the failures with this cause.
    let (ids, causes) = match &review.selection {
        Selection::Listed(ids, causes) => (&ids[..], causes.bytes()),
        Selection::Result(_) => (reports, Vec::new()),
    };
    let muted = sqlx::query_as(
        "insert into known_failure (customer_id, id, project_id, fingerprint, test_case_id,
             headline, ticket, comment, muted_until, created_by_id, created_by, review_id)
         select $1, next_id(null), project_id, fingerprint, test_case_id, min(headline), $6,
                $7, $8, $9, $10, $12
         from (
             select project_id, fingerprint, headline,
                    case when not $4 then test_case_id end as test_case_id
             from failure
             where customer_id = $1 and execution_id = $2 and test_report_id = any($3)
               and (test_report_id = any($11) or fingerprint = any($5))
         ) as failed
         group by project_id, fingerprint, test_case_id
         -- In one order, so that reviews of the same causes do not deadlock.
         order by fingerprint, test_case_id
         on conflict on constraint known_failure_cause_key do update
         set ticket = excluded.ticket, comment = excluded.comment,
             muted_until = excluded.muted_until, revision = known_failure.revision + 1,
             is_expired = known_failure.is_expired and excluded.muted_until <= now(),
             is_announced = known_failure.is_announced
                 and excluded.muted_until <= known_failure.muted_until,
             review_id = excluded.review_id,
             before_review = jsonb_build_object(
                 'Ticket', known_failure.ticket, 'Comment', known_failure.comment,
                 'MutedUntil', known_failure.muted_until, 'IsExpired', known_failure.is_expired,
                 'IsAnnounced', known_failure.is_announced
             )
         returning id, xmax = 0",
    );
    Ok(muted
        .bind(caller.customer)
        .bind(execution)
        .bind(reports)
        .bind(mute.every_case)
        .bind(causes)
        .bind(review.ticket.as_deref().unwrap_or_default())
        .bind(review.comment.as_deref().unwrap_or_default())
        .bind(mute.until)
        .bind(caller.user)
        .bind(&*caller.name)
        .bind(ids)
        .bind(review_id)
        .fetch_all(&mut **tx)
        .await?)
}

/// Returns the id of a new review.
pub(super) async fn next_id(tx: &mut PgTransaction<'_>) -> Result<ReviewId, Fault> {
    Ok(sqlx::query_scalar("select next_id(null)").fetch_one(&mut **tx).await?)
}

/// Stores a review of locked reports by a caller, of which these are muted from now on if they fail.
/// Returns their states.
pub(super) async fn save_selected(
    tx: &mut PgTransaction<'_>,
    caller: &Caller,
    reports: &[TestReportId],
    (review_id, review): (ReviewId, &Review),
    muted: &[String],
) -> Result<Vec<ReportState>, Fault> {
    let columns = ReportState::COLUMNS;
    let update = sqlx::query_as(AssertSqlSafe(format!(
        "update test_report
         set status = $3, judgement = $3, comment = nullif(coalesce($4, comment), ''),
             ticket = coalesce($5, ticket),
             is_muted = is_muted or id::text = any($6) and result in ('Failed', 'Error'),
             reviewed_by_id = $7, reviewed_by = $8, review_time = now(), revision = revision + 1,
             review_id = $9,
             before_review = jsonb_build_object(
                 'Status', status, 'Judgement', judgement, 'Comment', comment, 'Ticket', ticket,
                 'IsMuted', is_muted, 'ReviewedById', reviewed_by_id, 'ReviewedBy', reviewed_by,
                 'ReviewTime', review_time, 'Revision', revision + 1
             )
         where customer_id = $1 and id = any($2)
         returning {columns}"
    )));
    let reviewed: Vec<ReportState> = update
        .bind(caller.customer)
        .bind(reports)
        .bind(name_of(review.status))
        .bind(&review.comment)
        .bind(&review.ticket)
        .bind(muted)
        .bind(caller.user)
        .bind(&*caller.name)
        .bind(review_id)
        .fetch_all(&mut **tx)
        .await?;
    Ok(reviewed)
}
