//! Where executions are listed: below a project, a test set or a test case of the catalog.

use assay_auth::Caller;
use assay_proto::{CustomerId, Fault, ProjectId, catalog::FindRecordsRequest};
use sqlx::PgPool;
use tokio::join;
use tonic::{Code, Status};

use crate::{catalog::Catalog, deletion};

/// Fails unless the catalog has the place. What was executed can be looked at while the catalog is
/// away, too: the project is there then if something was executed in it.
pub(crate) async fn check(
    db: &PgPool,
    catalog: &Catalog,
    caller: &Caller,
    project: ProjectId,
    place: FindRecordsRequest,
) -> Result<(), Status> {
    if deletion::store::is_deleted(db, caller.customer, project).await? {
        return Err(Fault::NotFound("project").into());
    }
    let is_known = has_executions(db, caller.customer, project);
    let (found, is_known) = join!(catalog.find(caller, place), is_known);
    let is_known = is_known?;
    match found {
        Err(status) if is_known && is_away(&status) => Ok(()),
        found => found,
    }
}

fn is_away(status: &Status) -> bool {
    [Code::Unavailable, Code::DeadlineExceeded].contains(&status.code())
}

async fn has_executions(
    db: &PgPool,
    customer: CustomerId,
    project: ProjectId,
) -> Result<bool, Fault> {
    // One index has those that are in the archive, another one the rest.
    let found = sqlx::query_scalar(
        "select exists (select from live_execution where customer_id = $1 and project_id = $2
                           and not archived)
             or exists (select from live_execution where customer_id = $1 and project_id = $2
                           and archived)",
    );
    Ok(found.bind(customer).bind(project).fetch_one(db).await?)
}
