//! Incidents, as far as results and causes concern them: the search that begins when an execution has
//! completed, and causes that have become others.

use assay_proto::{CustomerId, Fault, ProjectId};
use sqlx::{AssertSqlSafe, PgTransaction};

use crate::progress::execution::ExecutionState;

/// Requests a search for incidents in an execution that has just completed, unless it is of the past.
pub async fn request_search(
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

/// Locks the open incidents of a project until the end of the transaction, in the order of their ids, before some of
/// them are changed.
pub async fn lock_open(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    project: ProjectId,
) -> Result<(), Fault> {
    let lock = sqlx::query(
        "select from incident
         where customer_id = $1 and project_id = $2 and ended_at is null
         order by id
         for no key update",
    );
    lock.bind(customer).bind(project).execute(&mut **tx).await?;
    Ok(())
}

/// Number of the latest executions of an incident in which its cause is sought.
const SOUGHT: i64 = 100;

/// Gives open incidents the causes that their failures have now, in pairs of the cause before and now. An incident
/// whose cause has become several has the one of most of its executions: others may only have been joined with it.
pub async fn follow(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    project: ProjectId,
    (before, now): (&[Vec<u8>], &[Vec<u8>]),
) -> Result<(), Fault> {
    lock_open(tx, customer, project).await?;
    let follow = sqlx::query(AssertSqlSafe(format!(
        "update incident i set fingerprint = most.fingerprint
         from (
             select distinct on (o.id) o.id, cause.fingerprint
             from incident o
             cross join lateral (
                 select o.fingerprint, true as is_present
                 union all
                 select moved.now, false from unnest($3::bytea[], $4::bytea[]) as moved (before, now)
                 where moved.before = o.fingerprint
             ) as cause
             cross join lateral (
                 select count(*) as number
                 from (
                     select execution_id from incident_execution a
                     where a.customer_id = $1 and a.incident_id = o.id
                     order by execution_id desc
                     limit {SOUGHT}
                 ) as latest
                 where exists (
                     select from failure f
                     where f.customer_id = $1 and f.execution_id = latest.execution_id
                       and f.fingerprint = cause.fingerprint
                 )
             ) as found
             where o.customer_id = $1 and o.project_id = $2 and o.ended_at is null
               and o.fingerprint = any($3)
             order by o.id, found.number desc, cause.is_present = (found.number > 0) desc, cause.fingerprint
         ) as most
         where i.customer_id = $1 and i.id = most.id and i.fingerprint <> most.fingerprint"
    )));
    follow.bind(customer).bind(project).bind(before).bind(now).execute(&mut **tx).await?;
    Ok(())
}
