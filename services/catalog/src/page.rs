//! Lists of a project's records.

use assay_proto::{CustomerId, Fault, ProjectId};
use sqlx::PgExecutor;

use crate::project;

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
