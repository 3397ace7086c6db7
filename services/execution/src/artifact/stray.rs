//! Files that are being stored or removed, in PostgreSQL. The cleanup reads those of all customers.

use assay_proto::{ArtifactId, CustomerId, ExecutionId, Fault};
use assay_storage::Renew;
use futures::FutureExt;
use sqlx::{FromRow, PgExecutor, PgPool, PgTransaction};

/// A file that may be in the store without being an artifact.
#[derive(FromRow)]
pub(super) struct Stray {
    pub(super) customer: CustomerId,
    pub(super) execution: ExecutionId,
    pub(super) artifact: ArtifactId,
}

/// Inserts files before they are stored, with the sizes for which they have room.
pub(super) async fn insert(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    execution: ExecutionId,
    files: &[(ArtifactId, i64)],
) -> Result<(), Fault> {
    let (ids, sizes): (Vec<_>, Vec<_>) = files.iter().copied().unzip();
    sqlx::query(
        "insert into stray_file (customer_id, execution_id, artifact_id, size)
         select $1, $2, id, size from unnest($3::uuid[], $4::bigint[]) as file (id, size)",
    )
    .bind(customer)
    .bind(execution)
    .bind(ids)
    .bind(sizes)
    .execute(db)
    .await?;
    Ok(())
}

/// Returns what records that the upload of a file is in progress. It fails if the file is being removed.
pub(super) fn renewal(db: &PgPool, customer: CustomerId, id: ArtifactId) -> Renew {
    let db = db.clone();
    Box::new(move || {
        let db = db.clone();
        async move { touch(&db, customer, id).await }.boxed()
    })
}

async fn touch(db: &PgPool, customer: CustomerId, id: ArtifactId) -> Result<(), Fault> {
    let touched = sqlx::query(
        "update stray_file set since = now()
         where customer_id = $1 and artifact_id = $2 and not is_removed",
    );
    taken(touched.bind(customer).bind(id).execute(db).await?.rows_affected())
}

/// Records that room for more bytes of a file is claimed. Fails if it is being removed.
pub(super) async fn grow(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    id: ArtifactId,
    more: i64,
) -> Result<(), Fault> {
    let grown = sqlx::query(
        "update stray_file set size = size + $3, since = now()
         where customer_id = $1 and artifact_id = $2 and not is_removed",
    );
    taken(grown.bind(customer).bind(id).bind(more).execute(db).await?.rows_affected())
}

/// Locks files that may become artifacts. Fails if one of them is being removed.
pub(super) async fn lock(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    ids: &[ArtifactId],
) -> Result<(), Fault> {
    let locked = sqlx::query(
        "select from stray_file
         where customer_id = $1 and artifact_id = any($2) and not is_removed
         order by artifact_id
         for update",
    );
    let locked = locked.bind(customer).bind(ids).fetch_all(&mut **tx).await?;
    if locked.len() == ids.len() { Ok(()) } else { Err(given_up()) }
}

fn given_up() -> Fault {
    Fault::Unavailable("the upload was given up, and")
}

/// Fails unless a statement has changed the row of a file, which is not being removed then.
pub(super) fn taken(rows: u64) -> Result<(), Fault> {
    if rows == 1 { Ok(()) } else { Err(given_up()) }
}

/// Marks a file as being removed. Returns whether it is not an artifact.
pub(super) async fn condemn(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    id: ArtifactId,
) -> Result<bool, Fault> {
    let condemned = sqlx::query(
        "update stray_file set is_removed = true where customer_id = $1 and artifact_id = $2",
    );
    let condemned = condemned.bind(customer).bind(id).execute(db).await?;
    Ok(condemned.rows_affected() > 0)
}

/// Deletes a file that was removed.
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

/// Marks up to 100 abandoned files after one of them as being removed, and returns them. An upload in progress
/// renews its row about every 20 seconds.
pub(super) async fn abandon(
    db: impl PgExecutor<'_>,
    after: Option<ArtifactId>,
) -> Result<Vec<Stray>, Fault> {
    let files = sqlx::query_as(
        "with abandoned as (
             select customer_id, artifact_id from stray_file
             where since < now() - interval '1 hour'
               and artifact_id > coalesce($1, '00000000-0000-0000-0000-000000000000')
             order by artifact_id
             limit 100
             for update skip locked
         ), marked as (
             update stray_file stray set is_removed = true
             from abandoned
             where stray.customer_id = abandoned.customer_id
               and stray.artifact_id = abandoned.artifact_id
             returning stray.customer_id, stray.execution_id, stray.artifact_id
         )
         select customer_id as customer, execution_id as execution, artifact_id as artifact
         from marked order by artifact_id",
    );
    Ok(files.bind(after).fetch_all(db).await?)
}
