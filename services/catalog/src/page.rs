//! Lists of a project's records, newest first: in the order of their ids, backwards.

use assay_proto::{CustomerId, Fault, ProjectId};
use assay_runtime::list::Slice;
use sqlx::PgExecutor;
use uuid::Uuid;

use crate::project;

/// The id that all of a slice come before; no record has the largest one.
pub(crate) fn bound(slice: &Slice) -> Result<Uuid, Fault> {
    let Some(cursor) = &slice.after else { return Ok(Uuid::max()) };
    Uuid::try_parse(cursor)
        .map_err(|_| Fault::invalid("cursor", "must be one that a list answered"))
}

/// The rows of a slice. That there are none may be because there is no such project, which is
/// looked up only then.
pub(crate) async fn of_project<T>(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    project: ProjectId,
    rows: Vec<T>,
) -> Result<Vec<T>, Fault> {
    if rows.is_empty() {
        project::store::find(db, customer, project).await?;
    }
    Ok(rows)
}
