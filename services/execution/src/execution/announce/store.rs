//! What others are told of an execution beside its own row.

use assay_proto::{CustomerId, ExecutionId, Fault, events::FailedTestCase};
use sqlx::PgTransaction;

/// The first test cases of a locked execution that failed or could not be run, in the order of the
/// test set.
pub(super) async fn first_failed(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    execution: ExecutionId,
    most: i64,
) -> Result<Vec<FailedTestCase>, Fault> {
    let failed = sqlx::query_as(
        "select test_case_id as id, test_case_identifier as identifier, test_case_name as name,
                result
         from test_report r
         where customer_id = $1 and execution_id = $2 and result in ('Failed', 'Error')
         order by r.id
         limit $3",
    );
    Ok(failed.bind(customer).bind(execution).bind(most).fetch_all(&mut **tx).await?)
}
