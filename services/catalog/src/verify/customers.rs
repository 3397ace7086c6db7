//! Customers, compared with what the identity service has of them.

use assay_events::{KnownCustomer, deleted_customers};
use assay_proto::Fault;
use assay_records::appliances;
use sqlx::PgTransaction;

/// Lets the events that change what [`compare_appliances`] stores wait until the end of a transaction. So what is read
/// from the identity service afterwards is not older than what they have stored.
pub async fn lock_appliances(tx: &mut PgTransaction<'_>) -> Result<(), Fault> {
    sqlx::query("lock table appliances in share row exclusive mode").execute(&mut **tx).await?;
    Ok(())
}

/// Describes the appliances that differ from those of the identity service, and stores the latter if asked for.
pub async fn compare_appliances(
    tx: &mut PgTransaction<'_>,
    known: &[KnownCustomer],
    repairs: bool,
) -> Result<Vec<String>, Fault> {
    let deleted = deleted_customers(&mut **tx, known).await?;
    let live = KnownCustomer::live(known, &deleted);
    let known: Vec<_> = live.map(|one| one.appliances.clone()).collect();
    let differing = appliances::differing(tx, &known).await?;
    if repairs {
        appliances::replace(tx, &known).await?;
    }
    Ok(differing)
}
