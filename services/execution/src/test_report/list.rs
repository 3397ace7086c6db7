//! The test reports of an execution, as a stream.

use assay_ledger::test_report::store;
use assay_proto::{CustomerId, ExecutionId, Fault, Listed, TestReportId, execution::TestReport};
use assay_runtime::list::{self, Rows, Slice};
use futures::{Stream, TryStreamExt};
use prost::Message;
use sqlx::{FromRow, PgExecutor, PgPool};

/// Returns the reports of an execution, in the order of its test set, in parts that fit into a
/// message.
pub(crate) fn of_execution(
    db: PgPool,
    customer: CustomerId,
    execution: ExecutionId,
) -> impl Stream<Item = Result<Vec<TestReport>, Fault>> + Send {
    let parts = list::whole(None, None, move |slice| {
        let db = db.clone();
        async move { read(&db, customer, execution, &slice).await }
    });
    parts.map_ok(|part| part.into_iter().map(|listed: ListedReport| listed.report).collect())
}

/// Reads a slice of the reports.
async fn read(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    execution: ExecutionId,
    slice: &Slice,
) -> Result<Rows<ListedReport>, Fault> {
    let reports = store::select(
        "where customer_id = $1 and execution_id = $2
           and id > coalesce($3, '00000000-0000-0000-0000-000000000000')
         order by id
         limit $4",
    )
    .bind(customer)
    .bind(execution)
    .bind(TestReportId::from_field_if_any("cursor", slice.after.as_deref())?)
    .bind(slice.limit)
    .fetch(db);
    slice.read(reports).await
}

/// A report as an item of [`list::whole`]. The contract has no batch of reports.
#[derive(FromRow)]
struct ListedReport {
    #[sqlx(flatten)]
    report: TestReport,
}

impl Listed for ListedReport {
    fn cursor(&self) -> &str {
        &self.report.id
    }

    fn size(&self) -> usize {
        self.report.encoded_len()
    }
}
