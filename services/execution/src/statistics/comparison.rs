//! The test cases that have different results in two executions.

use assay_proto::{CustomerId, ExecutionId, Fault, TestCaseId, execution::ResultDifference};
use assay_rpc::list::{Rows, Slice};
use sqlx::PgPool;

/// Lists differences, in the order of the ids of the test cases.
pub(super) async fn list(
    db: &PgPool,
    customer: CustomerId,
    (execution, other): (ExecutionId, ExecutionId),
    slice: &Slice,
) -> Result<Rows<ResultDifference>, Fault> {
    let after = TestCaseId::from_field_if_any("cursor", slice.after.as_deref())?;
    // Both sides have an index in this order, so that only the rows of the slice are merged.
    let differences = sqlx::query_as(
        "select test_case_id,
                coalesce(one.test_case_identifier, other.test_case_identifier)
                    as test_case_identifier,
                coalesce(one.test_case_name, other.test_case_name) as test_case_name,
                coalesce(one.result, 'NotExecuted') as result,
                coalesce(other.result, 'NotExecuted') as other_result
         from (
             select * from test_report
             where customer_id = $1 and execution_id = $2
               and test_case_id > coalesce($4, '00000000-0000-0000-0000-000000000000')
         ) as one
         full join (
             select * from test_report
             where customer_id = $1 and execution_id = $3
               and test_case_id > coalesce($4, '00000000-0000-0000-0000-000000000000')
         ) as other using (test_case_id)
         where coalesce(one.result, 'NotExecuted') <> coalesce(other.result, 'NotExecuted')
           and ($5::text is null or concat_ws(E'\\n', one.test_case_identifier, one.test_case_name,
                   other.test_case_identifier, other.test_case_name) ilike $5)
         order by test_case_id
         limit $6",
    );
    let differences: Vec<ResultDifference> = differences
        .bind(customer)
        .bind(execution)
        .bind(other)
        .bind(after)
        .bind(slice.pattern.as_deref())
        .bind(slice.limit)
        .fetch_all(db)
        .await?;
    Ok(differences.into())
}
