//! The differences between what incidents count and the executions that they affect, and their repair. Only counts and
//! times are derived again: whether an incident has begun, its cause and its end follow from the order in which
//! executions have completed, and from what was muted by then.

use assay_database::begin;
use assay_proto::{Fault, IncidentId};
use sqlx::{AssertSqlSafe, PgPool};

/// The incidents `i`, with the values `derived` that follow from the executions which they affect. Those of deleted
/// projects are being removed.
const DERIVED: &str = "from (
         select * from incident
         where not exists (
             select from deletion d
             where d.customer_id = incident.customer_id
               and d.project_id in (incident.project_id, '00000000-0000-0000-0000-000000000000')
         )
     ) as i
     cross join lateral (
         select count(*)::int as executions, count(distinct a.test_set_id)::int as test_sets,
                coalesce(min(e.request_time), i.begun_at) as begun_at,
                coalesce(max(e.request_time), i.last_seen_at) as last_seen_at
         from incident_execution a
         join execution e on e.customer_id = a.customer_id and e.id = a.execution_id
         where a.customer_id = i.customer_id and a.incident_id = i.id
     ) as derived";

const IS_DIFFERENT: &str = "(i.executions, i.test_sets, i.begun_at, i.last_seen_at)
    <> (derived.executions, derived.test_sets, derived.begun_at, derived.last_seen_at)";

/// Returns a statement that lists the differences between the stored values and the derived ones, as the columns
/// `noun`, `id`, `field`, `stored` and `derived`.
pub(crate) fn differences() -> String {
    format!(
        "select 'incident' as noun, i.id::text as id, value.field, value.stored, value.derived
         {DERIVED}
         cross join lateral (
             values ('executions', i.executions::text, derived.executions::text),
                    ('test_sets', i.test_sets::text, derived.test_sets::text),
                    ('begun_at', i.begun_at::text, derived.begun_at::text),
                    ('last_seen_at', i.last_seen_at::text, derived.last_seen_at::text)
         ) as value (field, stored, derived)
         where value.stored <> value.derived
         order by i.id, value.field"
    )
}

/// Stores the derived values of the incidents that differ, while none changes. Returns the number of incidents.
///
/// All incidents are read before, so that searches for incidents only wait if one differs. They lock incidents before
/// they change them: a weaker lock than this one would let both wait for each other.
pub(crate) async fn repair(db: &PgPool) -> Result<u64, Fault> {
    let differing = AssertSqlSafe(format!("select i.id {DERIVED} where {IS_DIFFERENT}"));
    let differing: Vec<IncidentId> = sqlx::query_scalar(differing).fetch_all(db).await?;
    if differing.is_empty() {
        return Ok(0);
    }
    let mut tx = begin(db).await?;
    sqlx::query("lock table incident in exclusive mode").execute(&mut *tx).await?;
    let repair = sqlx::query(AssertSqlSafe(format!(
        "update incident
         set executions = differing.executions, test_sets = differing.test_sets,
             begun_at = differing.begun_at, last_seen_at = differing.last_seen_at
         from (
             select i.customer_id, i.id, derived.* {DERIVED}
             where i.id = any($1) and {IS_DIFFERENT}
         ) as differing
         where incident.customer_id = differing.customer_id and incident.id = differing.id"
    )));
    let repaired = repair.bind(differing).execute(&mut *tx).await?.rows_affected();
    tx.commit().await?;
    Ok(repaired)
}
