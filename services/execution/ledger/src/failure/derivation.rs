//! Deriving the causes of stored failures again, after the rules of a project have changed.

use assay_proto::{CustomerId, ExecutionId, Fault, ProjectId};
use sqlx::{AssertSqlSafe, PgExecutor, PgPool, PgTransaction};
use uuid::Uuid;

use super::derive;
use crate::{column::column, execution::store::lock};

/// Requests that all failures of a project are derived again, in the transaction that changes its rules.
pub async fn request(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    project: ProjectId,
) -> Result<(), Fault> {
    let request = sqlx::query(
        "insert into changed_causes (customer_id, project_id) values ($1, $2)
         on conflict on constraint changed_causes_pkey do update
         set before = excluded.before, horizon = null",
    );
    request.bind(customer).bind(project).execute(&mut **tx).await?;
    Ok(())
}

/// Whether failures of the project of an execution are still to be derived again.
pub async fn is_pending(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    execution: ExecutionId,
) -> Result<bool, Fault> {
    let pending = sqlx::query_scalar(
        "select exists (
             select from changed_causes c
             join execution e on e.customer_id = c.customer_id and e.project_id = c.project_id
             where c.customer_id = $1 and e.id = $2
         )",
    );
    Ok(pending.bind(customer).bind(execution).fetch_one(db).await?)
}

/// The condition that a project's failures may be derived: every transaction that stores failures sees the
/// rules as they are now.
const SETTLED: &str = "horizon <= pg_snapshot_xmin(pg_current_snapshot())";

/// Returns the first project after another one whose failures may be derived now, and that `is_due` selects
/// by the columns `customer_id` and `project_id`.
pub async fn next(
    db: &PgPool,
    (customer, project): (CustomerId, ProjectId),
    is_due: &str,
) -> Result<Option<(CustomerId, ProjectId)>, Fault> {
    let note = "update changed_causes set horizon = pg_snapshot_xmax(pg_current_snapshot())
                where horizon is null";
    sqlx::query(note).execute(db).await?;
    let next = sqlx::query_as(AssertSqlSafe(format!(
        "select customer_id, project_id from changed_causes
         where (customer_id, project_id) > ($1, $2) and {SETTLED} and {is_due}
         order by customer_id, project_id
         limit 1"
    )));
    Ok(next.bind(customer).bind(project).fetch_optional(db).await?)
}

/// Derives the failures of the latest execution that is left, and notes it. Returns false if none is left,
/// and ends the request. Rules that change meanwhile begin it again.
pub async fn step(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    project: ProjectId,
) -> Result<bool, Fault> {
    let before = sqlx::query_scalar(AssertSqlSafe(format!(
        "select before from changed_causes
         where customer_id = $1 and project_id = $2 and {SETTLED}
         for update"
    )));
    let before: Option<Uuid> =
        before.bind(customer).bind(project).fetch_optional(&mut **tx).await?;
    let Some(before) = before else { return Ok(false) };
    let next = sqlx::query_scalar(
        "select id from live_execution
         where customer_id = $1 and project_id = $2 and id < $3 and expired_at is null
         order by id desc
         limit 1",
    );
    let next: Option<ExecutionId> =
        next.bind(customer).bind(project).bind(before).fetch_optional(&mut **tx).await?;
    let Some(id) = next else {
        let end = "delete from changed_causes where customer_id = $1 and project_id = $2";
        sqlx::query(end).bind(customer).bind(project).execute(&mut **tx).await?;
        return Ok(false);
    };
    match lock(tx, customer, None, id).await {
        Ok(_) => derive_again(tx, customer, project, id).await?,
        // Deleted meanwhile.
        Err(Fault::NotFound(_)) => {}
        Err(fault) => return Err(fault),
    }
    let note = "update changed_causes set before = $3 where customer_id = $1 and project_id = $2";
    sqlx::query(note).bind(customer).bind(project).bind(id).execute(&mut **tx).await?;
    Ok(true)
}

/// Derives the failures of a locked execution, and moves known failures to the new causes.
async fn derive_again(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    project: ProjectId,
    id: ExecutionId,
) -> Result<(), Fault> {
    let moved = derive::repair(tx, customer, id).await?;
    let mut moved: Vec<(Vec<u8>, Vec<u8>)> = moved
        .into_iter()
        .filter_map(|one| Some((one.stored?.0, one.derived?.0)))
        .filter(|(stored, derived)| stored != derived)
        .collect();
    moved.sort_unstable();
    moved.dedup();
    if moved.is_empty() {
        return Ok(());
    }
    // A cause that becomes several stays known in each of them, until the latest of their ends.
    let copy = sqlx::query(
        "insert into known_failure (customer_id, id, project_id, fingerprint, test_case_id, headline,
             ticket, comment, muted_until, created_by_id, created_by, created_at, is_expired)
         select distinct on (moved.derived, k.test_case_id)
                k.customer_id, next_id(null), k.project_id, moved.derived, k.test_case_id, k.headline,
                k.ticket, k.comment, k.muted_until, k.created_by_id, k.created_by, k.created_at,
                k.is_expired
         from unnest($3::bytea[], $4::bytea[]) as moved (stored, derived)
         join known_failure k
             on k.customer_id = $1 and k.project_id = $2 and k.fingerprint = moved.stored
         order by moved.derived, k.test_case_id, k.muted_until desc
         on conflict on constraint known_failure_cause_key do update
         set muted_until = greatest(known_failure.muted_until, excluded.muted_until),
             is_expired = known_failure.is_expired and excluded.is_expired,
             revision = known_failure.revision + 1",
    );
    copy.bind(customer)
        .bind(project)
        .bind(column(&moved, |(stored, _)| stored.as_slice()))
        .bind(column(&moved, |(_, derived)| derived.as_slice()))
        .execute(&mut **tx)
        .await?;
    // A known failure without failures would mute nothing any more.
    let remove = sqlx::query(
        "delete from known_failure k
         where k.customer_id = $1 and k.project_id = $2 and k.fingerprint = any($3)
           and not exists (
               select from failure f
               where f.customer_id = $1 and f.project_id = $2 and f.fingerprint = k.fingerprint
           )",
    );
    remove
        .bind(customer)
        .bind(project)
        .bind(column(&moved, |(stored, _)| stored.as_slice()))
        .execute(&mut **tx)
        .await?;
    Ok(())
}
