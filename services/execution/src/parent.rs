//! The record of the catalog below which executions are listed: a project, test set or test case.

use assay_auth::Caller;
use assay_ledger::deletion;
use assay_proto::{CustomerId, Fault, ProjectId, catalog::FindRecordsRequest};
use sqlx::PgPool;
use tokio::join;
use tonic::{Code, Status};

use crate::catalog::Catalog;

/// Returns the project of a request, if the catalog has it.
pub(crate) async fn project(
    db: &PgPool,
    catalog: &Catalog,
    caller: &Caller,
    project_id: &str,
) -> Result<ProjectId, Status> {
    let project = ProjectId::from_path(project_id)?;
    let record = FindRecordsRequest { project_id: project_id.to_owned(), ..Default::default() };
    check_exists(db, catalog, caller, project, record).await?;
    Ok(project)
}

/// Fails unless the catalog has the record. While the catalog is unavailable, a project exists if
/// it has executions, so that they can still be read.
pub(crate) async fn check_exists(
    db: &PgPool,
    catalog: &Catalog,
    caller: &Caller,
    project: ProjectId,
    record: FindRecordsRequest,
) -> Result<(), Status> {
    if deletion::store::is_deleted(db, caller.customer, project).await? {
        return Err(Fault::NotFound("project").into());
    }
    let has_executions = has_executions(db, caller.customer, project);
    let (found, has_executions) = join!(catalog.find(caller, record), has_executions);
    let has_executions = has_executions?;
    match found {
        Err(status) if has_executions && is_unavailable(&status) => Ok(()),
        found => found,
    }
}

fn is_unavailable(status: &Status) -> bool {
    [Code::Unavailable, Code::DeadlineExceeded].contains(&status.code())
}

async fn has_executions(
    db: &PgPool,
    customer: CustomerId,
    project: ProjectId,
) -> Result<bool, Fault> {
    // Archived executions have an index of their own.
    let found = sqlx::query_scalar(
        "select exists (select from live_execution where customer_id = $1 and project_id = $2
                           and not archived)
             or exists (select from live_execution where customer_id = $1 and project_id = $2
                           and archived)",
    );
    Ok(found.bind(customer).bind(project).fetch_one(db).await?)
}
