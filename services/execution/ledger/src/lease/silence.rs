//! Leases whose engines report nothing, in PostgreSQL. Their tests have timed out.

use std::time::Duration;

use assay_proto::{CustomerId, ExecutionId, Fault, InstanceId, LeaseId, TestReportId, Timestamp};
use chrono::DateTime;
use sqlx::{FromRow, PgTransaction};

/// A lease whose engine has reported no instance in time, unless the last one was late.
#[derive(Debug, FromRow)]
pub struct SilentLease {
    pub id: LeaseId,
    pub test_report_id: TestReportId,
    /// Maximum duration of an instance, in minutes; 0 for the default.
    pub maximum_duration_in_min: f64,
    leased_at: Timestamp,
    /// The last instance of the report. Its id has the time at which it was stored.
    last_instance: Option<InstanceId>,
}

impl SilentLease {
    /// Returns the time of the last progress: that of the lease, or of the last instance since.
    fn progressed_at(&self) -> Timestamp {
        let reported = self.last_instance.and_then(|id| id.0.get_timestamp());
        let (seconds, nanos) = reported.map_or((0, 0), |time| time.to_unix());
        let reported = DateTime::from_timestamp(seconds.cast_signed(), nanos).unwrap_or_default();
        Timestamp(reported.max(self.leased_at.0))
    }
}

/// Lists the leases of an execution that time out unless their last instance is new.
pub async fn silent(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    execution: ExecutionId,
) -> Result<Vec<SilentLease>, Fault> {
    let silent = sqlx::query_as(
        "select l.id, l.leased_at, s.test_report_id, s.maximum_duration_in_min, (
                    select i.id from instance i
                    where i.customer_id = $1 and i.test_report_id = s.test_report_id
                    order by i.id desc
                    limit 1
                ) as last_instance
         from lease l
         join schedule s on s.customer_id = l.customer_id and s.id = l.schedule_id
         where l.customer_id = $1 and l.execution_id = $2 and l.ended_at is null
           and l.times_out_at <= now()",
    );
    Ok(silent.bind(customer).bind(execution).fetch_all(&mut **tx).await?)
}

/// Lets a silent lease go on if its last instance is new: until `patience` has passed since then.
/// Returns whether it does.
pub async fn prolong(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    lease: &SilentLease,
    patience: Duration,
) -> Result<bool, Fault> {
    let prolonged = sqlx::query(
        "update lease set times_out_at = $3::timestamptz + make_interval(secs => $4)
         where customer_id = $1 and id = $2
           and $3::timestamptz + make_interval(secs => $4) > now()",
    );
    let prolonged = prolonged
        .bind(customer)
        .bind(lease.id)
        .bind(lease.progressed_at())
        .bind(patience.as_secs_f64());
    Ok(prolonged.execute(&mut **tx).await?.rows_affected() > 0)
}
