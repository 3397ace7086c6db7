//! The removal of uploads, in PostgreSQL. The sweep reads those of all customers.

use assay_database::begin;
use assay_proto::{CustomerId, Fault, ProjectId, UploadId};
use sqlx::{AssertSqlSafe, PgPool, PgTransaction};

use super::store::PATIENCE;

/// Number of uploads that are removed at once. Each may have 10,000 parts, and a statement has 30 seconds.
const AT_A_TIME: i64 = 10;

/// Deletes an upload. Its parts become stray.
pub(crate) async fn delete(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    project: ProjectId,
    id: UploadId,
) -> Result<(), Fault> {
    let found = sqlx::query(
        "select from upload
         where customer_id = $1 and project_id = $2 and id = $3 and expires_at > now()
         for update",
    );
    let found = found.bind(customer).bind(project).bind(id).fetch_optional(&mut **tx).await?;
    found.ok_or(Fault::NotFound("upload"))?;
    discard(tx, vec![(customer, id)]).await
}

/// Deletes some uploads of a deleted project. Returns their number, which is 0 if it has none.
pub(crate) async fn purge(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    project: ProjectId,
) -> Result<usize, Fault> {
    let uploads: Vec<(CustomerId, UploadId)> = sqlx::query_as(
        "select customer_id, id from upload where customer_id = $1 and project_id = $2
         order by id limit $3
         for update",
    )
    .bind(customer)
    .bind(project)
    .bind(AT_A_TIME)
    .fetch_all(&mut **tx)
    .await?;
    let count = uploads.len();
    discard(tx, uploads).await?;
    Ok(count)
}

/// Deletes the expired uploads of all customers, unless a request appends to them.
pub(crate) async fn expire(db: &PgPool) -> Result<(), Fault> {
    loop {
        let mut tx = begin(db).await?;
        let expired = sqlx::query_as(AssertSqlSafe(format!(
            "select customer_id, id from upload
             where expires_at < now()
               and (writer_id is null or written_at < now() - interval '{PATIENCE}')
             order by expires_at
             limit $1
             for update skip locked"
        )));
        let expired: Vec<(CustomerId, UploadId)> =
            expired.bind(AT_A_TIME).fetch_all(&mut *tx).await?;
        let count = i64::try_from(expired.len()).map_err(Fault::internal)?;
        discard(&mut tx, expired).await?;
        tx.commit().await?;
        if count < AT_A_TIME {
            return Ok(());
        }
    }
}

/// Deletes uploads that the transaction has locked. Their parts become stray.
async fn discard(
    tx: &mut PgTransaction<'_>,
    uploads: Vec<(CustomerId, UploadId)>,
) -> Result<(), Fault> {
    if uploads.is_empty() {
        return Ok(());
    }
    let (customers, ids): (Vec<_>, Vec<_>) = uploads.into_iter().unzip();
    sqlx::query(
        "with doomed as (
             select upload.customer_id, upload.id, upload.project_id
             from unnest($1::uuid[], $2::uuid[]) as given (customer_id, id)
             join upload on upload.customer_id = given.customer_id and upload.id = given.id
         ), part as (
             delete from upload_part using doomed
             where upload_part.customer_id = doomed.customer_id
               and upload_part.upload_id = doomed.id
             returning upload_part.customer_id, doomed.project_id, upload_part.content_id
         ), stray as (
             insert into stray_content (customer_id, folder_id, content_id, size, is_removed)
             select customer_id, project_id, content_id, 0, true from part
         )
         delete from upload using doomed
         where upload.customer_id = doomed.customer_id and upload.id = doomed.id",
    )
    .bind(customers)
    .bind(ids)
    .execute(&mut **tx)
    .await?;
    Ok(())
}
