//! Leases whose engines report nothing, in PostgreSQL. Their tests have timed out.
//!
//! All times are of the clock of PostgreSQL. Ids have those of the replicas that made them, whose clocks may differ.

use std::time::Duration;

use assay_proto::{CustomerId, ExecutionId, Fault, LeaseId, TestReportId};
use sqlx::{FromRow, PgTransaction};

/// A lease whose engine has reported no instance in time.
#[derive(Debug, FromRow)]
pub struct SilentLease {
    pub id: LeaseId,
    pub test_report_id: TestReportId,
    /// Maximum duration of an instance, in minutes; 0 for the default.
    pub maximum_duration_in_min: f64,
}

/// Lists the leases of an execution that have timed out.
pub async fn silent(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    execution: ExecutionId,
) -> Result<Vec<SilentLease>, Fault> {
    let silent = sqlx::query_as(
        "select l.id, s.test_report_id, s.maximum_duration_in_min
         from lease l
         join schedule s on s.customer_id = l.customer_id and s.id = l.schedule_id
         where l.customer_id = $1 and l.execution_id = $2 and l.ended_at is null
           and l.times_out_at <= now()",
    );
    Ok(silent.bind(customer).bind(execution).fetch_all(&mut **tx).await?)
}

/// Lets a lease whose engine has just reported an instance go on until `patience` has passed.
pub async fn prolong(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    id: LeaseId,
    patience: Duration,
) -> Result<(), Fault> {
    let prolong = sqlx::query(
        "update lease set times_out_at = now() + make_interval(secs => $3)
         where customer_id = $1 and id = $2 and ended_at is null",
    );
    prolong.bind(customer).bind(id).bind(patience.as_secs_f64()).execute(&mut **tx).await?;
    Ok(())
}
