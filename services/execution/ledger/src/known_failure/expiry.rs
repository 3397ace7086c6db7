//! The ends of known failures, in PostgreSQL. The statements are for all customers.

use assay_proto::{CustomerId, Fault, KnownFailureId, ProjectId};
use sqlx::PgTransaction;

/// Maximum number of known failures that expire in a transaction.
const EXPIRED_AT_ONCE: i64 = 500;

/// Hours before its end in which it is published that a known failure ends soon.
pub const NOTICE_IN_H: i32 = 24;

/// Marks known failures of all customers whose end has passed, and returns them.
pub async fn expire(
    tx: &mut PgTransaction<'_>,
) -> Result<Vec<(CustomerId, ProjectId, KnownFailureId)>, Fault> {
    let expired = sqlx::query_as(
        "update known_failure k
         set is_expired = true
         from (
             select customer_id, id from known_failure
             where muted_until <= now() and not is_expired
             order by muted_until
             limit $1
             for no key update skip locked
         ) as ended
         where k.customer_id = ended.customer_id and k.id = ended.id
         returning k.customer_id, k.project_id, k.id",
    );
    Ok(expired.bind(EXPIRED_AT_ONCE).fetch_all(&mut **tx).await?)
}

/// Marks known failures of all customers that end soon, and returns them.
pub async fn announce(
    tx: &mut PgTransaction<'_>,
) -> Result<Vec<(CustomerId, ProjectId, KnownFailureId)>, Fault> {
    let announced = sqlx::query_as(
        "update known_failure k
         set is_announced = true
         from (
             select customer_id, id from known_failure
             where muted_until > now() and muted_until <= now() + make_interval(hours => $2)
               and not is_expired and not is_announced
             order by muted_until
             limit $1
             for no key update skip locked
         ) as ending
         where k.customer_id = ending.customer_id and k.id = ending.id
         returning k.customer_id, k.project_id, k.id",
    );
    Ok(announced.bind(EXPIRED_AT_ONCE).bind(NOTICE_IN_H).fetch_all(&mut **tx).await?)
}
