//! Openings in PostgreSQL, of many users at once.

use std::collections::BTreeMap;

use assay_proto::{Fault, name_of};
use sqlx::PgTransaction;

use super::Opening;

/// How many openings of each user are kept for each project: twice as many as are shown, since some
/// of the records may be in the archive.
const KEPT: i64 = 40;

/// Writes openings down, in their order, as of now.
pub(super) async fn put(tx: &mut PgTransaction<'_>, openings: &[Opening]) -> Result<(), Fault> {
    // Each record once, as it was opened last; and in one order for all who write.
    let latest: BTreeMap<_, _> = (0_i64..)
        .zip(openings)
        .map(|(place, it)| ((it.customer, it.user, it.kind, it.record), (place, it.owner)))
        .collect();
    sqlx::query(
        "insert into opening (customer_id, user_id, kind, record_id, owner_id, opened_at)
         select customer_id, user_id, kind, record_id, owner_id,
                now() + place * interval '1 microsecond'
         from unnest($1::uuid[], $2::uuid[], $3::text[], $4::uuid[], $5::uuid[], $6::bigint[])
             as opened (customer_id, user_id, kind, record_id, owner_id, place)
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

/// Forgets what the users of these openings have opened too long ago to be shown.
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
