//! The lock of the monitors of projects.

use assay_proto::{CustomerId, Fault, ProjectId};
use sqlx::PgTransaction;

/// Locks the monitors of projects until the end of the transaction. A transaction that changes states or alarms of
/// several test cases locks them first, so that it deadlocks neither with another one, whatever their order is, nor
/// with a change of a monitor, which has locked the monitor before its alarms.
pub async fn lock_all(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    projects: &[ProjectId],
) -> Result<(), Fault> {
    let lock = sqlx::query(
        "select from monitor
         where customer_id = $1 and project_id = any($2)
         order by id
         for no key update",
    );
    lock.bind(customer).bind(projects).execute(&mut **tx).await?;
    Ok(())
}
