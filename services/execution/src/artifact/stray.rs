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

/// Inserts a file before it is stored, or once it is no longer an artifact.
pub(super) async fn insert(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    execution: ExecutionId,
    id: ArtifactId,
) -> Result<(), Fault> {
    sqlx::query(
        "insert into stray_file (customer_id, execution_id, artifact_id) values ($1, $2, $3)",
    )
    .bind(customer)
    .bind(execution)
    .bind(id)
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
