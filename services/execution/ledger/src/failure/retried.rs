//! The messages of tests that passed on a retry. Their failures are not stored as such, because they do not
//! count; the steps of the attempts are.

use std::collections::HashMap;

use assay_proto::{CustomerId, EnumColumn, ExecutionId, Fault, TestReportId, TestResult};
use futures::TryStreamExt;
use sqlx::{FromRow, PgPool};

use super::cause;
use crate::instance::steps;

/// Maximum size of the stored steps that are read for a list, in bytes. The messages of further tests are left
/// out.
const MOST: i64 = 16 << 20;

/// The first attempt of a report that failed.
#[derive(FromRow)]
struct Attempt {
    report: TestReportId,
    #[sqlx(try_from = "EnumColumn<TestResult>")]
    result: i32,
    steps: Vec<u8>,
}

/// Returns the messages of the first failed attempts of reports of an execution, by the ids of the reports.
pub async fn headlines(
    db: &PgPool,
    customer: CustomerId,
    execution: ExecutionId,
    reports: &[&str],
) -> Result<HashMap<String, String>, Fault> {
    let mut headlines = HashMap::new();
    if reports.is_empty() {
        return Ok(headlines);
    }
    let first = sqlx::query_as(
        "select a.test_report_id as report, a.result, a.steps
         from (
             select *, sum(size) over (order by test_report_id) as total
             from (
                 select distinct on (test_report_id) test_report_id, instance_nr, attempt,
                        octet_length(steps) as size
                 from attempt
                 where customer_id = $1 and test_report_id = any($3::text[]::uuid[])
                   and result in ('Failed', 'Error')
                 order by test_report_id, instance_nr, attempt
             ) as failed
         ) as first
         join attempt a on a.customer_id = $1 and a.test_report_id = first.test_report_id
             and a.instance_nr = first.instance_nr and a.attempt = first.attempt
         join execution e on e.customer_id = $1 and e.id = $2 and e.expired_at is null
         where first.total <= $4",
    );
    let first = first.bind(customer).bind(execution).bind(reports).bind(MOST);
    let mut first = first.fetch(db);
    // One at a time: the steps of an attempt may take a mebibyte.
    while let Some(Attempt { report, result, steps }) = first.try_next().await? {
        let result = TestResult::try_from(result).unwrap_or_default();
        if let Some(cause) = cause(result, &steps::read(&steps)?) {
            headlines.insert(report.to_string(), cause.headline);
        }
    }
    Ok(headlines)
}
