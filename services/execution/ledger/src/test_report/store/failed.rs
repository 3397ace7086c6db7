//! Test cases that have failed or could not run, in PostgreSQL.

use assay_proto::{CustomerId, ExecutionId, Fault, TestReportId, events::FailedTestCase};
use sqlx::PgTransaction;

/// Lists the first test cases of a locked execution that have failed or could not run, in the order
/// of the test set.
pub async fn first_failed(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    execution: ExecutionId,
    limit: i64,
) -> Result<Vec<FailedTestCase>, Fault> {
    let failed = sqlx::query_as(
        "select test_case_id as id, test_case_identifier as identifier, test_case_name as name, result,
                owners
         from test_report r
         where customer_id = $1 and execution_id = $2 and result in ('Failed', 'Error')
         order by r.id
         limit $3",
    );
    Ok(failed.bind(customer).bind(execution).bind(limit).fetch_all(&mut **tx).await?)
}

/// Returns the test case of a report that has failed.
pub async fn failed(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    report: TestReportId,
) -> Result<Option<FailedTestCase>, Fault> {
    let failed = sqlx::query_as(
        "select test_case_id as id, test_case_identifier as identifier, test_case_name as name, result,
                owners
         from test_report where customer_id = $1 and id = $2",
    );
    Ok(failed.bind(customer).bind(report).fetch_optional(&mut **tx).await?)
}
