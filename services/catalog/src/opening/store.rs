//! Openings in PostgreSQL, a row for each list of recent records.

use std::collections::HashMap;

use assay_proto::{Fault, name_of};
use sqlx::PgPool;
use uuid::Uuid;

use super::{KEPT, List};

/// Puts the opened records, of which the last is the latest, at the start of their lists. Leaves out those of projects
/// and customers that were deleted since.
pub(super) async fn upsert(db: &PgPool, opened: &HashMap<List, Vec<Uuid>>) -> Result<(), Fault> {
    let rows = opened.iter().flat_map(|(list, records)| {
        (0_i32..).zip(records).map(move |(position, record)| (list, position, *record))
    });
    let rows: Vec<_> = rows.collect();
    // All replicas write lists in the same order, so they do not deadlock.
    sqlx::query(
        "insert into opening (customer_id, user_id, kind, owner_id, record_ids)
         select customer_id, user_id, kind, owner_id, array_agg(record_id order by position desc)
         from unnest($1::uuid[], $2::uuid[], $3::text[], $4::uuid[], $5::uuid[], $6::int[])
             as opened (customer_id, user_id, kind, owner_id, record_id, position)
         where case when owner_id = customer_id
               then not exists (
                   select from deleted_customer d where d.customer_id = opened.customer_id
               )
               else exists (
                   select from project p
                   where p.customer_id = opened.customer_id and p.id = opened.owner_id
                     and p.deleted_at is null
               ) end
         group by customer_id, user_id, kind, owner_id
         order by customer_id, user_id, kind, owner_id
         on conflict on constraint opening_pkey do update set record_ids = array(
             select record_id
             from unnest(excluded.record_ids || opening.record_ids) with ordinality
                 as merged (record_id, position)
             group by record_id
             order by min(position)
             limit $7
         )",
    )
    .bind(rows.iter().map(|(list, ..)| list.customer).collect::<Vec<_>>())
    .bind(rows.iter().map(|(list, ..)| list.user).collect::<Vec<_>>())
    .bind(rows.iter().map(|(list, ..)| name_of(list.kind)).collect::<Vec<_>>())
    .bind(rows.iter().map(|(list, ..)| list.owner).collect::<Vec<_>>())
    .bind(rows.iter().map(|(.., record)| *record).collect::<Vec<_>>())
    .bind(rows.iter().map(|(_, position, _)| *position).collect::<Vec<_>>())
    .bind(i64::try_from(KEPT).unwrap_or(i64::MAX))
    .execute(db)
    .await?;
    Ok(())
}
