//! The test reports of an execution, as a stream.

use std::ops::Deref;

use assay_ledger::test_report::store;
use assay_proto::{
    CustomerId, EnumColumn, ExecutionId, Fault, Listed, TestReportId, TestResult,
    execution::TestReport,
};
use assay_rpc::list::{self, Rows, Slice};
use futures::Stream;
use prost::Message;
use sqlx::{FromRow, PgExecutor, PgPool};

/// Returns the reports of an execution, in the order of its test set, in parts that fit into a
/// message.
pub(crate) fn of_execution(
    db: PgPool,
    customer: CustomerId,
    execution: ExecutionId,
) -> impl Stream<Item = Result<Vec<ListedReport>, Fault>> + Send {
    list::whole(None, None, move |slice| {
        let db = db.clone();
        async move { read(&db, customer, execution, &slice).await }
    })
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
#[derive(Clone, FromRow)]
pub(crate) struct ListedReport {
    #[sqlx(flatten)]
    report: TestReport,
    #[sqlx(try_from = "EnumColumn<TestResult>")]
    missing_result: i32,
}

impl ListedReport {
    /// Returns the result of the instances that the report lacks.
    pub(crate) fn missing_result(&self) -> TestResult {
        TestResult::try_from(self.missing_result).unwrap_or_default()
    }
}

impl From<ListedReport> for TestReport {
    fn from(listed: ListedReport) -> Self {
        listed.report
    }
}

impl Deref for ListedReport {
    type Target = TestReport;

    fn deref(&self) -> &TestReport {
        &self.report
    }
}

impl Listed for ListedReport {
    fn cursor(&self) -> &str {
        &self.report.id
    }

    fn size(&self) -> usize {
        self.report.encoded_len()
    }
}
