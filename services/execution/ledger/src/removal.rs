//! Removes many rows in short statements, so that other transactions do not wait for their locks.

use std::time::{Duration, Instant};

use assay_fair::Throttle;
use assay_proto::{CustomerId, Fault, TestReportId};
use assay_work::Age;
use sqlx::PgPool;

/// Returns a throttle for removals. Batches of fewer rows would not be faster.
pub fn throttle() -> Throttle {
    Throttle::within(500..=10_000)
}

/// Duration of a removal that has failed from which the store of files counts as hanging: it is shorter than
/// the deadline of a call.
const HANGS: Duration = Duration::from_secs(10);

/// Whether a failed removal that began then has waited for a store that hangs. Others would wait for their
/// deadline, too, one after the other.
pub fn has_hung(begun: Instant) -> bool {
    begun.elapsed() > HANGS
}

/// Returns the age of what waits the longest to be removed: files of uploads that did not end, results of
/// expired executions, and executions of deleted projects.
pub fn age() -> Age {
    Age {
        metric: "assay_removal_age_seconds",
        help: "Time since the oldest files, results or executions that wait to be removed were due.",
        label: None,
        due_since: "select min(due) from (
                 (select since + interval '1 hour' as due from stray_file
                  where since < now() - interval '1 hour' order by since limit 1)
                 union all
                 (select expired_at from execution
                  where expired_at is not null and pruned_at is null order by id limit 1)
                 union all
                 select min(deleted_at) from deletion where purged_at is null
             ) as removal"
            .to_owned(),
    }
}

/// Runs a statement that deletes rows of these reports.
pub async fn of_reports(
    db: &PgPool,
    throttle: &mut Throttle,
    statement: &'static str,
    customer: CustomerId,
    reports: &[TestReportId],
) -> Result<(), Fault> {
    let begun = Instant::now();
    sqlx::query(statement).bind(customer).bind(reports).execute(db).await?;
    throttle.pause(begun.elapsed()).await;
    Ok(())
}

/// Removes the instances of reports. Each report comes with the maximum number of its instances.
pub async fn instances(
    db: &PgPool,
    throttle: &mut Throttle,
    customer: CustomerId,
    reports: &[(TestReportId, i32)],
) -> Result<(), Fault> {
    let mut rest = reports;
    while !rest.is_empty() {
        let (group, others) = rest.split_at(fitting(rest, throttle.batch_size()));
        let ids: Vec<TestReportId> = group.iter().map(|(id, _)| *id).collect();
        remove_in_ranges(db, throttle, customer, &ids).await?;
        rest = others;
    }
    Ok(())
}

/// Returns the number of leading reports, at least one, that have up to `rows` instances together.
fn fitting(reports: &[(TestReportId, i32)], rows: i64) -> usize {
    let mut instances = 0;
    let fits = |(_, count): &&(TestReportId, i32)| {
        instances += i64::from(*count).max(1);
        instances <= rows
    };
    reports.iter().take_while(fits).count().max(1)
}

/// Removes the instances of reports in ranges of their numbers, since a single report may have
/// thousands.
async fn remove_in_ranges(
    db: &PgPool,
    throttle: &mut Throttle,
    customer: CustomerId,
    reports: &[TestReportId],
) -> Result<(), Fault> {
    for (statement, last) in [
        (
            "delete from attempt
             where customer_id = $1 and test_report_id = any($2) and instance_nr between $3 and $4",
            "select max(instance_nr) from attempt
             where customer_id = $1 and test_report_id = any($2)",
        ),
        (
            "delete from failure
             where customer_id = $1 and test_report_id = any($2) and instance_nr between $3 and $4",
            "select max(instance_nr) from failure
             where customer_id = $1 and test_report_id = any($2)",
        ),
        (
            "delete from instance
             where customer_id = $1 and test_report_id = any($2) and instance_nr between $3 and $4",
            "select max(instance_nr) from instance
             where customer_id = $1 and test_report_id = any($2)",
        ),
    ] {
        let last = sqlx::query_scalar::<_, Option<i32>>(last).bind(customer).bind(reports);
        let Some(last) = last.fetch_one(db).await? else { continue };
        // The failure of an engine has the number 0.
        let mut first = 0;
        while first <= last {
            let each = throttle.batch_size() / i64::try_from(reports.len()).unwrap_or(i64::MAX);
            let until = first.saturating_add(i32::try_from(each.max(1)).unwrap_or(i32::MAX) - 1);
            let begun = Instant::now();
            sqlx::query(statement)
                .bind(customer)
                .bind(reports)
                .bind(first)
                .bind(until)
                .execute(db)
                .await?;
            throttle.pause(begun.elapsed()).await;
            first = until.saturating_add(1);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_with_few_instances_are_removed_together() {
        let reports = |counts: &[i32]| -> Vec<_> {
            counts.iter().map(|count| (TestReportId::new(), *count)).collect()
        };
        assert_eq!(fitting(&reports(&[3, 3, 3]), 6), 2);
        assert_eq!(fitting(&reports(&[100, 1]), 6), 1, "at least one");
        assert_eq!(
            fitting(&reports(&[0, 0, 0]), 2),
            2,
            "reports without instances count as one row"
        );
    }
}
