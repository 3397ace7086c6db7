//! Known failures of a review that is taken back, in PostgreSQL.

use assay_proto::{CustomerId, Fault, KnownFailureId, ProjectId, ReviewId};
use assay_records::Action;
use sqlx::PgTransaction;

/// Takes back what a review has made known: deletes what it has created, and restores what it has changed.
/// Returns what was changed and deleted.
pub async fn undo(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    project: ProjectId,
    review: ReviewId,
) -> Result<Vec<(KnownFailureId, Action)>, Fault> {
    // In the order of those that a review makes, so that the two do not deadlock.
    let lock = sqlx::query(
        "select from known_failure
         where customer_id = $1 and project_id = $2 and review_id = $3
         order by fingerprint, test_case_id
         for update",
    );
    lock.bind(customer).bind(project).bind(review).execute(&mut **tx).await?;
    let delete = sqlx::query_scalar(
        "delete from known_failure
         where customer_id = $1 and project_id = $2 and review_id = $3 and before_review is null
         returning id",
    );
    let delete = delete.bind(customer).bind(project).bind(review);
    let deleted: Vec<KnownFailureId> = delete.fetch_all(&mut **tx).await?;
    let restore = sqlx::query_scalar(
        "update known_failure
         set ticket = before_review ->> 'Ticket', comment = before_review ->> 'Comment',
             muted_until = (before_review ->> 'MutedUntil')::timestamptz,
             is_expired = (before_review ->> 'IsExpired')::bool,
             is_announced = coalesce((before_review ->> 'IsAnnounced')::bool, is_announced),
             review_id = null, before_review = null, revision = revision + 1
         where customer_id = $1 and project_id = $2 and review_id = $3
         returning id",
    );
    let restore = restore.bind(customer).bind(project).bind(review);
    let restored: Vec<KnownFailureId> = restore.fetch_all(&mut **tx).await?;
    let deleted = deleted.into_iter().map(|id| (id, Action::Deleted));
    Ok(deleted.chain(restored.into_iter().map(|id| (id, Action::Changed))).collect())
}
