//! Openings in PostgreSQL. A statement covers openings of many users.

use std::collections::BTreeMap;

use assay_proto::{Fault, name_of};
use sqlx::PgTransaction;

use super::Opening;

/// Number of openings that are kept of each user in each project. A list shows half as many, since some
/// of the records may be archived.
const KEPT: i64 = 40;

/// Writes openings, in their order, with the current time.
pub(super) async fn upsert(tx: &mut PgTransaction<'_>, openings: &[Opening]) -> Result<(), Fault> {
    // The last opening of each record. All replicas write in the same order, so they do not deadlock.
    let latest: BTreeMap<_, _> = (0_i64..)
        .zip(openings)
        .map(|(index, it)| ((it.customer, it.user, it.kind, it.record), (index, it.owner)))
        .collect();
    sqlx::query(
        "insert into opening (customer_id, user_id, kind, record_id, owner_id, opened_at)
         select customer_id, user_id, kind, record_id, owner_id,
                now() + index * interval '1 microsecond'
         from unnest($1::uuid[], $2::uuid[], $3::text[], $4::uuid[], $5::uuid[], $6::bigint[])
             as opened (customer_id, user_id, kind, record_id, owner_id, index)
         order by customer_id, user_id, kind, record_id
         on conflict on constraint opening_pkey do update set opened_at = excluded.opened_at",
    )
    .bind(latest.keys().map(|key| key.0).collect::<Vec<_>>())
    .bind(latest.keys().map(|key| key.1).collect::<Vec<_>>())
    .bind(latest.keys().map(|key| name_of(key.2)).collect::<Vec<_>>())
    .bind(latest.keys().map(|key| key.3).collect::<Vec<_>>())
    .bind(latest.values().map(|value| value.1).collect::<Vec<_>>())
    .bind(latest.values().map(|value| value.0).collect::<Vec<_>>())
    .execute(&mut **tx)
    .await?;
    Ok(())
}

/// Deletes older openings of the users of these openings, beyond the number that is kept.
pub(super) async fn prune(tx: &mut PgTransaction<'_>, openings: &[Opening]) -> Result<(), Fault> {
    sqlx::query(
        "delete from opening
         using (
             select distinct customer_id, user_id, kind, owner_id
             from unnest($1::uuid[], $2::uuid[], $3::text[], $4::uuid[])
                 as opened (customer_id, user_id, kind, owner_id)
         ) touched
         where opening.customer_id = touched.customer_id and opening.user_id = touched.user_id
           and opening.kind = touched.kind and opening.owner_id = touched.owner_id
           and opening.opened_at < (
               select opened_at from opening kept
               where kept.customer_id = touched.customer_id and kept.user_id = touched.user_id
                 and kept.kind = touched.kind and kept.owner_id = touched.owner_id
               order by opened_at desc
               offset $5 - 1 limit 1
           )",
    )
    .bind(openings.iter().map(|opening| opening.customer).collect::<Vec<_>>())
    .bind(openings.iter().map(|opening| opening.user).collect::<Vec<_>>())
    .bind(openings.iter().map(|opening| name_of(opening.kind)).collect::<Vec<_>>())
    .bind(openings.iter().map(|opening| opening.owner).collect::<Vec<_>>())
    .bind(KEPT)
    .execute(&mut **tx)
    .await?;
    Ok(())
}
