//! The records of the catalog that leases refer to, in PostgreSQL.

use assay_proto::{CustomerId, Fault, LeaseId};
use sqlx::PgExecutor;

use super::store;

/// Returns the ids of the plan, the subject and the environment of a lease. Fails unless the lease is held.
pub async fn held(
    db: impl PgExecutor<'_> + Copy,
    customer: CustomerId,
    id: LeaseId,
) -> Result<Vec<String>, Fault> {
    store::check_held(db, customer, id).await?;
    let records: Option<Vec<String>> = sqlx::query_scalar(
        "select array_remove(
                    array[r.test_plan_id, e.software_version_id, e.environment_id]::text[], null)
         from lease l
         join schedule s on s.customer_id = l.customer_id and s.id = l.schedule_id
         join test_report r on r.customer_id = s.customer_id and r.id = s.test_report_id
         join execution e on e.customer_id = l.customer_id and e.id = l.execution_id
         where l.customer_id = $1 and l.id = $2",
    )
    .bind(customer)
    .bind(id)
    .fetch_optional(db)
    .await?;
    records.ok_or(Fault::NotFound("lease"))
}
