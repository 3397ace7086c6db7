//! Leases whose engines report nothing, in PostgreSQL. Their tests have timed out.

use std::time::Duration;

use assay_proto::{CustomerId, ExecutionId, Fault, InstanceId, LeaseId, TestReportId, Timestamp};
use chrono::{DateTime, TimeDelta, Utc};
use sqlx::{FromRow, PgTransaction};
use uuid::Uuid;

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
    /// Returns the time of the last progress: that of the lease, or of the last instance since. The clock whose times
    /// both ids have may be slow, but the time between them is right.
    fn progressed_at(&self) -> Timestamp {
        let reported = self.last_instance.and_then(|id| time_of(id.0));
        let Some((leased, reported)) = time_of(self.id.0).zip(reported) else {
            return self.leased_at;
        };
        let since = (reported - leased).max(TimeDelta::zero());
        Timestamp(reported.max(self.leased_at.0 + since))
    }
}

/// Returns the time of an id.
fn time_of(id: Uuid) -> Option<DateTime<Utc>> {
    let (seconds, nanos) = id.get_timestamp()?.to_unix();
    DateTime::from_timestamp(seconds.cast_signed(), nanos)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_counts_although_the_clock_of_ids_is_slow() {
        let id = |seconds: u64| Uuid::new_v7(uuid::Timestamp::from_unix_time(seconds, 0, 0, 20));
        let time = |seconds: u64| {
            Timestamp(DateTime::from_timestamp(seconds.cast_signed(), 0).unwrap_or_default())
        };
        let leased = 1_800_000_000;
        for (slow, reported, expected) in [(0, Some(50), 50), (300, Some(50), 50), (300, None, 0)] {
            let lease = SilentLease {
                id: LeaseId(id(leased - slow)),
                test_report_id: TestReportId::new(),
                maximum_duration_in_min: 1.0,
                leased_at: time(leased),
                last_instance: reported.map(|after| InstanceId(id(leased - slow + after))),
            };
            assert_eq!(lease.progressed_at(), time(leased + expected), "{slow} s");
        }
    }
}
