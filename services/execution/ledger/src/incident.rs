//! Incidents, as far as results and causes concern them: the search that begins when an execution has
//! completed, and causes that have become others.

use assay_proto::{CustomerId, Fault, ProjectId};
use sqlx::PgTransaction;

use crate::progress::execution::ExecutionState;

/// Has incidents sought in an execution that has just completed, unless it is of the past.
pub async fn seek(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    state: &ExecutionState,
) -> Result<(), Fault> {
    if state.is_past() {
        return Ok(());
    }
    let seek = sqlx::query(
        "insert into incident_search (customer_id, execution_id) values ($1, $2::uuid)
         on conflict on constraint incident_search_pkey do nothing",
    );
    seek.bind(customer).bind(&state.execution.id).execute(&mut **tx).await?;
    Ok(())
}

/// Gives open incidents the causes that their failures have now, in pairs of the cause before and now. An incident
/// whose cause has become several has one of them.
pub async fn follow(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    project: ProjectId,
    (before, now): (&[Vec<u8>], &[Vec<u8>]),
) -> Result<(), Fault> {
    let follow = sqlx::query(
        "update incident i set fingerprint = moved.now
         from unnest($3::bytea[], $4::bytea[]) as moved (before, now)
         where i.customer_id = $1 and i.project_id = $2 and i.ended_at is null
           and i.fingerprint = moved.before",
    );
    follow.bind(customer).bind(project).bind(before).bind(now).execute(&mut **tx).await?;
    Ok(())
}
