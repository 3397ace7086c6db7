//! An execution with its test reports, as a stream.

use assay_ledger::execution::store;
use assay_proto::{
    CustomerId, ExecutionId, ProjectId,
    execution::{Execution, TestReport},
};
use assay_rpc::list::Batches;
use futures::{StreamExt, TryStreamExt, stream};
use sqlx::PgPool;
use tonic::{Response, Status};

use crate::{console_link::ConsoleLinks, test_report::list::of_execution};

/// Returns an execution in parts: the first has everything and the first test reports, the others
/// only more test reports.
pub(crate) async fn details(
    db: &PgPool,
    console: &ConsoleLinks,
    customer: CustomerId,
    project: impl Into<Option<ProjectId>>,
    id: ExecutionId,
) -> Result<Response<Batches<Execution>>, Status> {
    let execution = store::find(db, customer, project.into(), id).await?.into_details();
    let parts = of_execution(db.clone(), customer, id);
    let mut parts = Box::pin(parts.map_ok(|part| part.into_iter().map(TestReport::from).collect()));
    let test_reports = parts.try_next().await?.unwrap_or_default();
    let url = console.execution(&execution.id);
    let first = Execution { url, test_reports, ..execution };
    let others = parts
        .map_ok(|test_reports| Execution { test_reports, ..Execution::default() })
        .map_err(Status::from);
    Ok(Response::new(Box::pin(stream::iter([Ok(first)]).chain(others))))
}
