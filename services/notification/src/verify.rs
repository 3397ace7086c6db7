//! Deleted customers, for the comparison with the identity service.

use assay_events::KnownCustomer;
use assay_proto::{CustomerId, Fault};
use sqlx::PgPool;

/// Returns those of some customers that this service has deleted, although the identity service has them.
pub async fn deleted_customers(
    db: &PgPool,
    known: &[KnownCustomer],
) -> Result<Vec<CustomerId>, Fault> {
    let live = known.iter().filter(|one| !one.is_deleted).map(KnownCustomer::id);
    let deleted = "select customer_id from deleted_customer
                   where customer_id = any($1)
                   order by customer_id";
    Ok(sqlx::query_scalar(deleted).bind(live.collect::<Vec<_>>()).fetch_all(db).await?)
}
