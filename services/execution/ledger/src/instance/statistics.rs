//! Statistics of the durations of a report's instances, for a box plot.

use assay_proto::{CustomerId, Fault, TestReportId, TestResult, execution::InstanceStatistics};
use sqlx::PgPool;

use crate::instance::{gaps, store};

/// Maximum length of the whiskers, in interquartile ranges.
const REACH: f64 = 1.5;

/// Computes the statistics without outliers, so that the whiskers end at the shortest and the
/// longest duration. Reads one index once. Quartiles are interpolated linearly.
const BOX: &str = "
    select coalesce(lower_value, 0) as lower_value,
           coalesce(quartile[1], 0) as first_quartile,
           coalesce(quartile[2], 0) as median,
           coalesce(mean, 0) as mean,
           coalesce(quartile[3], 0) as third_quartile,
           coalesce(upper_value, 0) as upper_value,
           total_count, failed_count, passed_count, aborted_count
    from (
        select min(duration_in_sec) as lower_value,
               percentile_cont(array[0.25, 0.5, 0.75]) within group (order by duration_in_sec)
                   as quartile,
               avg(duration_in_sec) as mean,
               max(duration_in_sec) as upper_value,
               count(*)::int as total_count,
               (count(*) filter (where result = 'Failed'))::int as failed_count,
               (count(*) filter (where result = 'Passed'))::int as passed_count,
               (count(*) filter (where result = 'Aborted'))::int as aborted_count
        from instance
        where customer_id = $1 and test_report_id = $2 and result <> 'NotExecuted'
    ) as box";

/// Returns the statistics of a report's finished instances. Missing instances are counted, but have
/// no duration.
pub async fn of(
    db: &PgPool,
    customer: CustomerId,
    report: TestReportId,
) -> Result<InstanceStatistics, Fault> {
    let mut whole: InstanceStatistics =
        sqlx::query_as(BOX).bind(customer).bind(report).fetch_one(db).await?;
    let gaps = gaps::of(db, customer, report).await?;
    if let Some(result) = gaps.result() {
        let missing = gaps.requested - whole.total_count;
        whole.total_count = gaps.requested;
        whole.aborted_count += if result == TestResult::Aborted { missing } else { 0 };
    }
    let reach = REACH * (whole.third_quartile - whole.first_quartile);
    let near = whole.first_quartile - reach..=whole.third_quartile + reach;
    if near.contains(&whole.lower_value) && near.contains(&whole.upper_value) {
        return Ok(whole);
    }
    let (lower_value, upper_value) = store::extremes(db, customer, report, &near).await?;
    let outliers = store::outside(db, customer, report, &near).await?;
    Ok(InstanceStatistics { lower_value, upper_value, outliers, ..whole })
}
