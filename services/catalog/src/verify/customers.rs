//! Customers, compared with what the identity service has of them.

use assay_database::begin;
use assay_events::KnownCustomer;
use assay_proto::{CustomerId, Fault};
use assay_records::appliances;
use sqlx::PgPool;

/// Returns those of some customers that the catalog has deleted, although the identity service has them.
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

/// Describes the appliances that differ from those of the identity service, and stores the latter if asked for.
pub async fn compare_appliances(
    db: &PgPool,
    known: &[KnownCustomer],
    repairs: bool,
) -> Result<Vec<String>, Fault> {
    let deleted = deleted_customers(db, known).await?;
    let live = known.iter().filter(|one| !one.is_deleted && !deleted.contains(&one.id()));
    let known: Vec<_> = live.map(|one| one.appliances.clone()).collect();
    let mut tx = begin(db).await?;
    let differing = appliances::differing(&mut tx, &known).await?;
    if repairs {
        appliances::replace(&mut tx, &known).await?;
    }
    tx.commit().await?;
    Ok(differing)
}
