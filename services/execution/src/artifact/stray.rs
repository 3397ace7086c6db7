//! Files that are being stored or removed, in PostgreSQL. The cleanup reads those of all customers.

use assay_proto::{ArtifactId, CustomerId, ExecutionId, Fault};
use sqlx::{FromRow, PgExecutor};

/// A file that may be in the store without being an artifact.
#[derive(FromRow)]
pub(super) struct Stray {
    pub(super) customer: CustomerId,
    pub(super) execution: ExecutionId,
    pub(super) artifact: ArtifactId,
}

/// Inserts files before they are stored, or once they are no longer artifacts.
pub(super) async fn insert(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    execution: ExecutionId,
    ids: &[ArtifactId],
) -> Result<(), Fault> {
    sqlx::query(
        "insert into stray_file (customer_id, execution_id, artifact_id)
         select $1, $2, unnest($3::uuid[])",
    )
    .bind(customer)
    .bind(execution)
    .bind(ids)
    .execute(db)
    .await?;
    Ok(())
}

/// Deletes a file that was removed or has become an artifact.
pub(super) async fn delete(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    id: ArtifactId,
) -> Result<(), Fault> {
    sqlx::query("delete from stray_file where customer_id = $1 and artifact_id = $2")
        .bind(customer)
        .bind(id)
        .execute(db)
        .await?;
    Ok(())
}

/// Lists up to 100 abandoned files after one of them. Storing a file takes far less than an hour.
pub(super) async fn abandoned(
    db: impl PgExecutor<'_>,
    after: Option<ArtifactId>,
) -> Result<Vec<Stray>, Fault> {
    let files = sqlx::query_as(
        "select customer_id as customer, execution_id as execution, artifact_id as artifact
         from stray_file
         where since < now() - interval '1 hour'
           and artifact_id > coalesce($1, '00000000-0000-0000-0000-000000000000')
         order by artifact_id
         limit 100",
    );
    Ok(files.bind(after).fetch_all(db).await?)
}
