//! Deriving the causes of stored failures again, after the rules of a project have changed.

use assay_events::{RecordKind, publish_all};
use assay_proto::{CustomerId, ExecutionId, Fault, ProjectId};
use sqlx::{AssertSqlSafe, PgExecutor, PgPool, PgTransaction};
use uuid::Uuid;

use super::derive;
use crate::{event, execution::store::lock, incident, known_failure};

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
pub const SETTLED: &str = "horizon <= pg_snapshot_xmin(pg_current_snapshot())";

/// Notes the transactions that may have read rules before they were changed. Requests that another transaction has
/// locked are left to the next round, so that two replicas do not deadlock.
pub async fn settle(db: &PgPool) -> Result<(), Fault> {
    let note = "update changed_causes c set horizon = pg_snapshot_xmax(pg_current_snapshot())
                from (
                    select customer_id, project_id from changed_causes
                    where horizon is null
                    for no key update skip locked
                ) as changed
                where c.customer_id = changed.customer_id and c.project_id = changed.project_id";
    sqlx::query(note).execute(db).await?;
    Ok(())
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

/// Derives the failures of a locked execution. Known failures and incidents follow to the new causes.
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
    let (stored, derived): (Vec<_>, Vec<_>) = moved.into_iter().unzip();
    let known = known_failure::store::follow(tx, customer, project, (&stored, &derived)).await?;
    let events = known.iter().map(|(id, action)| {
        event::record(customer, project, (RecordKind::KnownFailure, id), *action)
    });
    publish_all(tx, events).await?;
    incident::follow(tx, customer, project, (&stored, &derived)).await
}
