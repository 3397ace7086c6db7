//! Customers: the lock that orders what is added to one, and whether it is deleted.

use assay_proto::{CustomerId, Fault};
use sqlx::{PgExecutor, PgTransaction};

/// Locks the customer until the end of the transaction. Transactions that add notifications hold
/// this lock, so notifications are published in the order in which they are listed.
pub(crate) async fn lock(tx: &mut PgTransaction<'_>, customer: CustomerId) -> Result<(), Fault> {
    sqlx::query("select pg_advisory_xact_lock(hashtextextended($1::text, 0))")
        .bind(customer)
        .execute(&mut **tx)
        .await?;
    Ok(())
}

pub(crate) async fn is_deleted(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
) -> Result<bool, Fault> {
    let exists = "select exists (select from deleted_customer where customer_id = $1)";
    Ok(sqlx::query_scalar(exists).bind(customer).fetch_one(db).await?)
}

/// Fails if the customer is deleted. Transactions that add something hold the [`lock`].
pub(crate) async fn require_live(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
) -> Result<(), Fault> {
    if is_deleted(db, customer).await? { Err(Fault::NotFound("customer")) } else { Ok(()) }
}
