//! The test reports of an execution, as a stream.

use assay_proto::{CustomerId, ExecutionId, Fault, Listed, execution::TestReport};
use assay_runtime::list;
use futures::{Stream, TryStreamExt};
use prost::Message;
use sqlx::{FromRow, PgPool};

use super::store;

/// Returns the reports of an execution, in the order of its test set, in parts that fit into a
/// message.
pub(crate) fn of_execution(
    db: PgPool,
    customer: CustomerId,
    execution: ExecutionId,
) -> impl Stream<Item = Result<Vec<TestReport>, Fault>> + Send {
    let parts = list::whole(None, None, move |slice| {
        let db = db.clone();
        async move { store::list(&db, customer, execution, &slice).await }
    });
    parts.map_ok(|part| part.into_iter().map(|listed: ListedReport| listed.report).collect())
}

/// A report as an item of [`list::whole`]. The contract has no batch of reports.
#[derive(FromRow)]
pub(super) struct ListedReport {
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
