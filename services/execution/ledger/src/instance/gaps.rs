//! Missing instances: those that were not reported before their report ended. They have a result
//! but no rows, since a single report may lack thousands.

use assay_proto::{
    CustomerId, EnumColumn, Fault, InstanceId, TestReportId, TestResult,
    execution::{Instance, InstanceEntry},
};
use sqlx::{FromRow, PgExecutor};
use uuid::Uuid;

/// A report, as far as its missing instances depend on it.
#[derive(Debug, FromRow)]
pub(super) struct Gaps {
    #[sqlx(try_from = "uuid::Uuid")]
    report: Uuid,
    pub(super) requested: i32,
    /// The result of a missing instance.
    #[sqlx(try_from = "EnumColumn<TestResult>")]
    missing_result: i32,
    /// Whether all instances are stored, or were before they expired.
    is_whole: bool,
}

/// Reads the gaps of a report.
pub(super) async fn of(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    report: TestReportId,
) -> Result<Gaps, Fault> {
    let gaps = sqlx::query_as(
        "select r.id as report, r.requested_instances_count as requested, r.missing_result,
                r.finished_instances_count = r.requested_instances_count
                    or e.expired_at is not null as is_whole
         from test_report r
         join live_execution e on e.customer_id = r.customer_id and e.id = r.execution_id
         where r.customer_id = $1 and r.id = $2",
    );
    let gaps = gaps.bind(customer).bind(report).fetch_optional(db).await?;
    gaps.ok_or(Fault::NotFound("test report"))
}

impl Gaps {
    /// Returns the result of the missing instances. `None` if none is missing or the report is
    /// pending.
    pub(super) fn result(&self) -> Option<TestResult> {
        let result = TestResult::try_from(self.missing_result).unwrap_or_default();
        (!self.is_whole && result != TestResult::NotExecuted).then_some(result)
    }

    /// Returns the id of a missing instance: that of the report, with the number of the instance
    /// added to the second half, which is random. So the id is stable without being stored.
    fn id(&self, instance_nr: i32) -> InstanceId {
        let (time, random) = self.report.as_u64_pair();
        let random = random.wrapping_add(u64::from(instance_nr.unsigned_abs()));
        InstanceId(Uuid::from_u64_pair(time, random))
    }

    /// Returns the number of the missing instance with this id.
    pub(super) fn number(&self, id: InstanceId) -> Option<i32> {
        let (of_report, of_instance) = (self.report.as_u64_pair(), id.0.as_u64_pair());
        let number = i32::try_from(of_instance.1.wrapping_sub(of_report.1)).ok()?;
        (of_report.0 == of_instance.0 && (1..=self.requested).contains(&number)).then_some(number)
    }

    /// Returns the list entry of a missing instance.
    pub(super) fn entry(&self, instance_nr: i32, result: TestResult) -> InstanceEntry {
        InstanceEntry {
            id: self.id(instance_nr).to_string(),
            test_reports_id: self.report.to_string(),
            instance_nr,
            result: result.into(),
            ..InstanceEntry::default()
        }
    }

    /// Returns the missing instance with this id, if there is one.
    pub(super) fn instance(&self, id: InstanceId) -> Option<Instance> {
        let (instance_nr, result) = (self.number(id)?, self.result()?);
        Some(Instance {
            id: id.0.to_string(),
            test_reports_id: self.report.to_string(),
            instance_nr,
            result: result.into(),
            ..Instance::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_missing_instances_contain_their_numbers() {
        let report = Uuid::from_u64_pair(7, u64::MAX - 1);
        let gaps = Gaps { report, requested: 3, missing_result: 0, is_whole: false };
        for number in 1..=3 {
            assert_eq!(gaps.number(gaps.id(number)), Some(number));
        }
        for other in [gaps.id(4), InstanceId(report), InstanceId::new()] {
            assert_eq!(gaps.number(other), None);
        }
    }
}
