//! Lists of a project's records.

use assay_proto::{CustomerId, Fault, ProjectId};
use assay_runtime::list::Rows;
use sqlx::PgExecutor;

use crate::project;

/// Which rows a list has, as SQL: the active ones, or those in the archive. In the words of the
/// partial indexes.
pub(crate) fn part(archived: bool) -> &'static str {
    if archived { "archived and deleted_at is null" } else { "live" }
}

/// The rows of a slice. That there are none may be because there is no such project, which is
/// looked up only then.
pub(crate) async fn of_project<T>(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    project: ProjectId,
    rows: Rows<T>,
) -> Result<Rows<T>, Fault> {
    if rows.items.is_empty() {
        project::store::find(db, customer, project).await?;
    }
    Ok(rows)
}
